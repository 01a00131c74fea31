//! The source of a version's manifests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where manifests come from. Exactly one field is set.
// Counts properties instead of using a CEL rule, because any rule with a list exceeds the cost limit of the API server in a list of
// 1000 × 1000.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct Source {
    /// A folder or file in a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// A folder or file in an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerSource>,
    /// A chart in a Helm repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm: Option<HelmSource>,
    /// A manifest by URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<UrlSource>,
    /// A manifest in the catalogue itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<InlineSource>,
    /// The catalogue that has the content. Only in a copy for the namespace of a cluster, which lists what fits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<CatalogueSource>,
}

/// The kind of a [`Source`], with its data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SourceKind<'a> {
    /// A folder or file in a git repository.
    Git(&'a GitSource),
    /// A folder or file in an image.
    Docker(&'a DockerSource),
    /// A chart in a Helm repository.
    Helm(&'a HelmSource),
    /// A manifest by URL.
    Url(&'a UrlSource),
    /// A manifest in the catalogue itself.
    Inline(&'a InlineSource),
    /// Another catalogue has the content.
    Catalogue(&'a CatalogueSource),
}

/// A source with none or several of the kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a source must be one of git, docker, helm, url and inline")]
pub struct NotOneKind;

impl Source {
    /// Returns the kind of the source.
    ///
    /// # Errors
    /// [`NotOneKind`]. In the cluster, the schema refuses such a source. In an index of kops or a file, only the entry with it is
    /// unusable, so the kind is checked where a source is used, not when a catalogue is read.
    pub fn kind(&self) -> Result<SourceKind<'_>, NotOneKind> {
        let Self {
            git,
            docker,
            helm,
            url,
            inline,
            catalogue,
        } = self;
        match (git, docker, helm, url, inline, catalogue) {
            (Some(git), None, None, None, None, None) => Ok(SourceKind::Git(git)),
            (None, Some(docker), None, None, None, None) => Ok(SourceKind::Docker(docker)),
            (None, None, Some(helm), None, None, None) => Ok(SourceKind::Helm(helm)),
            (None, None, None, Some(url), None, None) => Ok(SourceKind::Url(url)),
            (None, None, None, None, Some(inline), None) => Ok(SourceKind::Inline(inline)),
            (None, None, None, None, None, Some(of)) => Ok(SourceKind::Catalogue(of)),
            _ => Err(NotOneKind),
        }
    }
}

impl<'a> SourceKind<'a> {
    /// Returns the credentials that the source names.
    #[must_use]
    pub fn auth(self) -> Option<&'a Auth> {
        match self {
            Self::Git(git) => git.auth.as_ref(),
            Self::Docker(docker) => docker.auth.as_ref(),
            Self::Helm(helm) => helm.auth.as_ref(),
            Self::Url(url) => url.auth.as_ref(),
            Self::Inline(_) | Self::Catalogue(_) => None,
        }
    }
}

/// A folder or file in a git repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitSource {
    /// URL of the repository.
    pub remote: String,
    /// Branch, tag or commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#ref: Option<GitRef>,
    /// File or folder in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
}

/// A branch, a tag or a commit. Exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct GitRef {
    /// A branch, which is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// A tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// A commit, which is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// An image that contains manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DockerSource {
    /// Image reference.
    pub image: String,
    /// File or folder in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Whether the registry uses HTTP without TLS.
    #[serde(
        default,
        rename = "plainHTTP",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub plain_http: bool,
}

/// A chart in a Helm repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HelmSource {
    /// `http(s)://` or `oci://`.
    pub url: String,
    /// Name of the chart.
    pub chart: String,
    /// Version of the chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Digest of the chart in an `oci://` registry, which is read whatever the tag of the version names now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Whether the registry of an `oci://` URL uses HTTP without TLS.
    #[serde(
        default,
        rename = "plainHTTP",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub plain_http: bool,
}

/// A manifest or, with method helm, a chart archive, by URL: `http(s)://`, `s3://`, `gs://`, `az://`, `file://`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UrlSource {
    /// Absolute, or relative to the location of the catalogue.
    #[schemars(length(min = 1, max = 2048))]
    pub manifest: String,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
}

/// A manifest in the catalogue itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InlineSource {
    /// YAML documents.
    pub manifest: String,
}

/// A catalogue that has the content of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogueSource {
    /// Its namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Credentials, by reference (semantics 16.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// A Secret in the namespace of the catalogue.
    pub secret_ref: SecretRef,
}

/// Name of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretRef {
    /// Name of the Secret.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_source_is_of_exactly_one_kind() {
        let auth = json!({"secretRef": {"name": "s"}});
        let git = json!({"remote": "https://h/r", "auth": auth});
        let inline = json!({"manifest": "a: b"});
        for (source, auth) in [
            (json!({"git": git}), Ok(Some("s"))),
            (
                json!({"docker": {"image": "h/i", "auth": auth}}),
                Ok(Some("s")),
            ),
            (
                json!({"helm": {"url": "u", "chart": "c", "auth": auth}}),
                Ok(Some("s")),
            ),
            (json!({"url": {"manifest": "m.yaml"}}), Ok(None)),
            (json!({"inline": inline}), Ok(None)),
            (
                json!({"catalogue": {"namespace": "n", "name": "c"}}),
                Ok(None),
            ),
            (json!({}), Err(NotOneKind)),
            (json!({"git": git, "inline": inline}), Err(NotOneKind)),
        ] {
            let read: Source = serde_json::from_value(source.clone()).unwrap();
            let found = read.kind().map(|kind| kind.auth());
            let found = found.map(|auth| auth.map(|auth| auth.secret_ref.name.as_str()));
            assert_eq!(found, auth, "{source}");
        }
    }
}
