//! Where the manifests of a version come from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where manifests come from: exactly one of the fields.
// Properties are counted, for any CEL rule with a list costs too much for the API server in a list of 1000 × 1000.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// A manifest right here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<InlineSource>,
}

/// A git repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GitSource {
    /// URL of the repository.
    pub remote: String,
    /// Branch, tag or commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#ref: Option<GitRef>,
    /// File or folder in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
}

/// One of the fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct GitRef {
    /// A branch: followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// A tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// A commit: fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// An image that holds manifests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DockerSource {
    /// Image reference.
    pub image: String,
    /// File or folder in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// The registry speaks HTTP without TLS.
    #[serde(
        default,
        rename = "plainHTTP",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub plain_http: bool,
}

/// A Helm repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelmSource {
    /// `http(s)://` or `oci://`.
    pub url: String,
    /// Name of the chart.
    pub chart: String,
    /// Version of the chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// The registry of an `oci://` URL speaks HTTP without TLS.
    #[serde(
        default,
        rename = "plainHTTP",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub plain_http: bool,
}

/// A manifest, or with method helm a chart archive, by URL: `http(s)://`, `s3://`, `gs://`, `az://`, `file://`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UrlSource {
    /// Absolute, or relative to the catalogue's own location.
    #[schemars(length(min = 1, max = 2048))]
    pub manifest: String,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
}

/// A manifest in the catalogue itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InlineSource {
    /// YAML documents.
    pub manifest: String,
}

/// Credentials by reference (semantics 16).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// A Secret in the catalogue's namespace.
    pub secret_ref: SecretRef,
}

/// Name of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecretRef {
    /// Name of the Secret.
    pub name: String,
}
