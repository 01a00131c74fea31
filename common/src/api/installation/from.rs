//! The origin of an add-on that no catalogue lists.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::api::catalogue::{AddonVersion, Constraints, HelmSource, Method, Source, UrlSource};

/// A chart or a manifest that the installation itself names, with fixed content. Exactly one of helm and url is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new("has(self.helm) != has(self.url)")
    .message("exactly one of helm and url is required"))]
#[x_kube(validation = kube::core::Rule::new("!has(self.helm) || self.method == 'helm'")
    .message("helm requires method helm"))]
pub struct AddonFrom {
    /// Version of the add-on; empty for a manifest that says none. Then its hash tells one content from another.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub version: String,
    /// How the content is turned into manifests.
    #[serde(default)]
    pub method: Method,
    /// A chart in a registry or a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm: Option<HelmSource>,
    /// A manifest or, with method helm, a chart archive, by its absolute URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<UrlSource>,
    /// Hex sha256 of the chart or the manifest, verified before anything is applied.
    #[schemars(length(min = 64, max = 64), regex(pattern = r"^[0-9a-f]{64}$"))]
    pub manifest_hash: String,
    /// The clusters that it fits.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
}

impl AddonFrom {
    /// Returns the chart or manifest of a version of an add-on.
    #[must_use]
    pub fn from_version(version: &AddonVersion) -> Self {
        Self {
            version: version.version.clone(),
            method: version.template.method,
            helm: version.source.helm.clone(),
            url: version.source.url.clone(),
            manifest_hash: version.manifest_hash.clone().unwrap_or_default(),
            constraints: version.constraints.clone(),
        }
    }

    /// Returns the chart or manifest as a source.
    #[must_use]
    pub fn to_source(&self) -> Source {
        Source {
            helm: self.helm.clone(),
            url: self.url.clone(),
            ..Source::default()
        }
    }

    /// Returns the digest that identifies the content: that of the chart in a registry, else that of the file.
    #[must_use]
    pub fn digest(&self) -> String {
        let of_registry = self.helm.as_ref().and_then(|helm| helm.digest.clone());
        of_registry.unwrap_or_else(|| format!("sha256:{}", self.manifest_hash))
    }

    /// Returns the reference as a user reads it: `oci://HOST/PATH/CHART:VERSION`, `chart CHART VERSION of URL`, or the URL of the file.
    #[must_use]
    pub fn location(&self) -> String {
        if let Some(url) = &self.url {
            return url.manifest.clone();
        }
        let Some(helm) = &self.helm else {
            return String::new();
        };
        let version = helm.version.as_deref().unwrap_or_default();
        let url = helm.url.trim_end_matches('/');
        match url.starts_with("oci://") {
            // Tags cannot contain the + of a version.
            true => format!("{url}/{}:{}", helm.chart, version.replace('+', "_")),
            false => format!("chart {} {version} of {url}", helm.chart),
        }
    }
}
