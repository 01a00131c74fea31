//! The origin of a whole catalogue.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::signature::SignaturePolicy;
use super::source::{DockerSource, GitRef, GitSource, Source, UrlSource};

/// The file that holds the add-ons of a catalogue, as an AddonCatalogue or a kops index. Exactly one of git, docker and url is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new("[has(self.git), has(self.docker), has(self.url)].filter(given, given).size() == 1")
    .message("exactly one of git, docker and url is required"))]
#[x_kube(validation = kube::core::Rule::new("has(self.digest) || !has(self.revision)")
    .message("revision can only be set together with digest"))]
pub struct CatalogueFrom {
    /// A file in a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// A file in an image or an OCI artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerSource>,
    /// A file by URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<UrlSource>,
    /// The sha256 of the file. If set, the catalogue is by reference: `addons` holds only names, and commands read the versions from
    /// the file, which must have this digest. Set by `catalogue add --by-reference`, updated by `catalogue sync`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// The commit, or the digest of the image, at which the file with `digest` is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub revision: Option<String>,
}

/// The original catalogue of a version in a merged catalogue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergedFrom {
    /// Name of the catalogue.
    pub catalogue: String,
    /// The private registry of that catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The signatures that catalogue requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<SignaturePolicy>,
}

impl CatalogueFrom {
    /// Creates the origin for a file by URL, without credentials.
    #[must_use]
    pub fn from_url(location: &str) -> Self {
        Self {
            url: Some(UrlSource {
                manifest: location.to_owned(),
                auth: None,
            }),
            ..Self::default()
        }
    }

    /// Returns the file as a source of manifests.
    #[must_use]
    pub fn to_source(&self) -> Source {
        Source {
            git: self.git.clone(),
            docker: self.docker.clone(),
            url: self.url.clone(),
            ..Source::default()
        }
    }

    /// Returns the file as a source, at `revision` if the catalogue is by reference, whatever the branch or tag is now.
    #[must_use]
    pub fn to_pinned_source(&self) -> Source {
        let mut source = self.to_source();
        let Some(revision) = &self.revision else {
            return source;
        };
        if let Some(git) = &mut source.git {
            git.r#ref = Some(GitRef {
                commit: Some(revision.clone()),
                ..GitRef::default()
            });
        }
        if let Some(docker) = &mut source.docker {
            docker.image = with_digest(&docker.image, revision);
        }
        source
    }
}

/// Returns the image with a digest instead of its tag: `HOST:PORT/NAME@DIGEST`.
pub fn with_digest(image: &str, digest: &str) -> String {
    let name = image.split('@').next().unwrap_or(image);
    let name = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => name,
    };
    format!("{name}@{digest}")
}
