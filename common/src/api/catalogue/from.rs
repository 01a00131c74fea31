//! Where a whole catalogue comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::source::{DockerSource, GitSource, Source, UrlSource};

/// Where the add-ons of a catalogue are written: one file with an AddonCatalogue or a kops index. Exactly one of the fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
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
}

/// Where a version of a merged catalogue is from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergedFrom {
    /// Name of the catalogue.
    pub catalogue: String,
    /// The private registry of that catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
}

impl CatalogueFrom {
    /// A file by URL, without credentials.
    #[must_use]
    pub fn of_url(location: &str) -> Self {
        Self {
            url: Some(UrlSource {
                manifest: location.to_owned(),
                auth: None,
            }),
            ..Self::default()
        }
    }

    /// The same as a source of manifests.
    #[must_use]
    pub fn source(&self) -> Source {
        Source {
            git: self.git.clone(),
            docker: self.docker.clone(),
            url: self.url.clone(),
            ..Source::default()
        }
    }
}
