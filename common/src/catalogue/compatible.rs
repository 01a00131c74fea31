//! The versions that fit a cluster, as references (semantics 1.7).

use serde::Serialize;

use super::Catalogue;
use super::select::{ClusterVersions, find_misfit};
use crate::api::catalogue::CatalogueClass;
use crate::manifest::digest::sha256_trimmed;

/// The maximum size of the references that are stored for a cluster, in bytes.
pub const MAX_BYTES: usize = 256 << 10;

/// The identity of a version, without its content.
#[derive(Serialize)]
struct VersionReference<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    /// The hash of the manifest, or the sha256 of an inline manifest; absent if neither is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

/// The references exceed [`MAX_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {versions} versions that fit take {} KiB, and at most {} KiB are stored for a cluster",
    bytes >> 10, MAX_BYTES >> 10
)]
pub struct TooManyVersions {
    /// The number of versions that fit.
    pub versions: usize,
    /// The size of their references.
    pub bytes: usize,
}

/// Returns the versions that fit a cluster as a JSON list, one per line, in the order of the catalogues. Versions of class Core are
/// left out, because users do not choose them. The same catalogues and cluster give the same bytes.
///
/// # Errors
/// [`TooManyVersions`].
pub fn list_references(
    catalogue: &Catalogue,
    cluster: &ClusterVersions,
) -> Result<String, TooManyVersions> {
    let fitting = catalogue.entries.iter().filter(|entry| {
        entry.class == CatalogueClass::Custom
            && find_misfit(&entry.version.constraints, cluster).is_none()
    });
    let lines: Vec<String> = fitting
        .map(|entry| {
            let version = &entry.version;
            let inline = version.source.inline.as_ref();
            let reference = VersionReference {
                name: &entry.addon,
                version: &version.version,
                id: &version.id,
                digest: match entry.verifiable_hash() {
                    Some(hash) => Some(hash.to_owned()),
                    None => inline.map(|inline| sha256_trimmed(inline.manifest.as_bytes())),
                },
            };
            // Texts can always be written as JSON.
            serde_json::to_string(&reference).unwrap_or_default()
        })
        .collect();
    let text = format!("[{}]\n", lines.join(",\n"));
    if text.len() > MAX_BYTES {
        return Err(TooManyVersions {
            versions: lines.len(),
            bytes: text.len(),
        });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use addons_versions::tolerant;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::catalogue::AddonCatalogue;

    fn of(addon: &str, class: &str, versions: &[Value]) -> AddonCatalogue {
        let spec = json!({"class": class, "addons": [{"name": addon, "versions": versions}]});
        AddonCatalogue::new(addon, serde_json::from_value(spec).unwrap())
    }

    fn version(version: &str, range: &str) -> Value {
        let source = json!({"inline": {"manifest": "a: 1"}});
        json!({"version": version, "id": "x", "constraints": {"k8sVersion": range}, "source": source})
    }

    #[test]
    fn only_what_fits_is_listed_and_the_list_has_an_end() {
        let web = [version("1.0.0", "<1.30"), version("2.0.0", ">=1.30")];
        let catalogues = [
            of("web", "Custom", &web),
            of("dns", "Core", &[version("1.0.0", "")]),
        ];
        let catalogue = Catalogue::from_objects(&catalogues);
        for (cluster, expected) in [("1.29.1", "1.0.0"), ("1.30.0-gke.1", "2.0.0")] {
            let facts = ClusterVersions {
                kubernetes: Some(tolerant::parse_kubernetes(cluster).unwrap()),
                kkp: None,
            };
            let text = list_references(&catalogue, &facts).unwrap();
            let found: Value = serde_json::from_str(&text).unwrap();
            let digest = sha256_trimmed(b"a: 1");
            let only = json!([{"name": "web", "version": expected, "id": "x", "digest": digest}]);
            assert_eq!(found, only, "{cluster}");
        }
        let many: Vec<Value> = (0..3000)
            .map(|i| version(&format!("1.0.{i}"), ""))
            .collect();
        let catalogue = Catalogue::from_objects(&[of("web", "Custom", &many)]);
        let error = list_references(&catalogue, &ClusterVersions::default()).unwrap_err();
        assert_eq!(error.versions, 3000);
    }
}
