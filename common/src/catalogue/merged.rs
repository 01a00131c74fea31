//! Merges the catalogues of one class into one, for other clusters (semantics 1.6).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::channel::{LocationError, resolve_manifest};
use super::is_copy;
use crate::api::catalogue::{
    Addon, AddonCatalogue, AddonCatalogueSpec, CatalogueClass, MergedFrom,
};

/// Returns the name of the merged catalogue of a class.
#[must_use]
pub fn name(class: CatalogueClass) -> &'static str {
    match class {
        CatalogueClass::Custom => "merged-custom",
        CatalogueClass::Core => "merged-core",
    }
}

/// The prefix of the name of a copied catalogue by reference, which is not merged because its versions are in a file.
const REFERENCE: &str = "merged-ref-";

/// Returns the name of the copy of a catalogue by reference.
#[must_use]
pub fn name_of_reference(source: &str) -> String {
    format!("{REFERENCE}{source}")
}

/// Returns the name of the catalogue by reference that `copy` is a copy of, or `None` if `copy` is not the name of one.
#[must_use]
pub fn source_of_reference(copy: &str) -> Option<&str> {
    copy.strip_prefix(REFERENCE)
}

/// Whether a catalogue is the copy of a catalogue by reference.
#[must_use]
pub fn is_of_reference(catalogue: &ObjectMeta) -> bool {
    let name = catalogue.name.as_deref().unwrap_or_default();
    is_copy(catalogue) && name.starts_with(REFERENCE)
}

/// Returns the name that identifies a catalogue in its file: of a copy, that of its source.
#[must_use]
pub fn name_in_file(catalogue: &ObjectMeta) -> &str {
    let name = catalogue.name.as_deref().unwrap_or_default();
    let source = source_of_reference(name);
    source.filter(|_| is_copy(catalogue)).unwrap_or(name)
}

/// Merges the catalogues of a class. The add-ons are sorted by name, their versions by the names of the catalogues. Every version
/// names its catalogue, and its relative manifest becomes an absolute location, because base URLs differ. The result does not depend
/// on the order of `sources`.
///
/// # Errors
/// [`LocationError`] if a relative manifest cannot be resolved.
pub fn merge(
    sources: &[&AddonCatalogue],
    class: CatalogueClass,
) -> Result<AddonCatalogueSpec, LocationError> {
    let name = |source: &AddonCatalogue| source.metadata.name.clone().unwrap_or_default();
    let mut sources: Vec<&AddonCatalogue> = sources.to_vec();
    sources.retain(|source| source.spec.class == class);
    sources.sort_by_key(|source| name(source));
    let mut addons: BTreeMap<&str, Addon> = BTreeMap::new();
    for source in sources {
        let base = source.spec.base_url.as_deref();
        for addon in &source.spec.addons {
            let merged = addons.entry(&addon.name).or_insert_with(|| Addon {
                name: addon.name.clone(),
                ..Addon::default()
            });
            if merged.description.is_none() {
                merged.description.clone_from(&addon.description);
            }
            merged.support = merged.support.or(addon.support);
            for version in &addon.versions {
                let mut version = version.clone();
                // Other catalogues may list the add-on without its end.
                version.deprecated = version.deprecated.or_else(|| addon.deprecated.clone());
                if let (Some(url), Some(base)) = (&mut version.source.url, base) {
                    url.manifest = resolve_manifest(base, &url.manifest)?;
                }
                // A version keeps the registry and policy that it brought along from an archive or another cluster (semantics 1.6,
                // 11.5).
                version.merged_from = Some(MergedFrom {
                    catalogue: name(source),
                    registry: source.spec.registry_for(&version).map(str::to_owned),
                    signature: source.spec.signature_for(&version).cloned(),
                });
                merged.versions.push(version);
            }
        }
    }
    Ok(AddonCatalogueSpec {
        class,
        addons: addons.into_values().collect(),
        ..AddonCatalogueSpec::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::names::LABEL_DERIVED_FROM;

    #[test]
    fn a_copy_by_reference_is_known_by_its_mark_and_its_name() {
        for (name, is_marked, is_copy, in_file) in [
            ("merged-ref-team", true, true, "team"),
            ("merged-ref-team", false, false, "merged-ref-team"),
            ("merged-custom", true, false, "merged-custom"),
        ] {
            let mut metadata = AddonCatalogue::new(name, Default::default()).metadata;
            let mark = (LABEL_DERIVED_FROM.to_owned(), "uid".to_owned());
            metadata.labels = is_marked.then(|| [mark].into());
            assert_eq!(is_of_reference(&metadata), is_copy);
            assert_eq!(name_in_file(&metadata), in_file);
        }
    }

    fn source(name: &str, spec: serde_json::Value) -> AddonCatalogue {
        AddonCatalogue::new(name, serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn each_version_says_where_it_is_from_and_the_order_of_the_sources_does_not_matter() {
        let version = |version, manifest| json!({"version": version, "source": {"url": {"manifest": manifest}}});
        let b = source(
            "b",
            json!({"baseURL": "https://b/all.yaml", "registry": "mirror", "addons": [
                {"name": "web", "description": "of b", "versions": [version("2", "web/2.yaml")]},
                {"name": "api", "versions": [version("1", "https://c/api.yaml")]},
            ]}),
        );
        let a = source(
            "a",
            json!({"addons": [{"name": "web", "description": "of a", "versions": [version("1", "https://a/web.yaml")]}]}),
        );
        let core = source(
            "core",
            json!({"class": "Core", "addons": [{"name": "dns", "versions": []}]}),
        );
        let merged = merge(&[&b, &core, &a], CatalogueClass::Custom).unwrap();
        assert_eq!(
            merge(&[&a, &b, &core], CatalogueClass::Custom).unwrap(),
            merged
        );
        let found: Vec<_> = merged
            .addons
            .iter()
            .flat_map(|addon| {
                addon.versions.iter().map(|version| {
                    let from = version.merged_from.as_ref().unwrap();
                    let url = &version.source.url.as_ref().unwrap().manifest;
                    format!(
                        "{} {} {url} {} {:?}",
                        addon.name, version.version, from.catalogue, from.registry
                    )
                })
            })
            .collect();
        assert_eq!(
            found,
            [
                "api 1 https://c/api.yaml b Some(\"mirror\")",
                "web 1 https://a/web.yaml a None",
                "web 2 https://b/web/2.yaml b Some(\"mirror\")",
            ]
        );
        assert_eq!(merged.addons[1].description.as_deref(), Some("of a"));
        let core = merge(&[&b, &core, &a], CatalogueClass::Core).unwrap();
        assert_eq!((core.class, core.addons.len()), (CatalogueClass::Core, 1));
    }

    /// The catalogue of an archive is a source at its site: its object says nothing, and its versions what theirs said.
    #[test]
    fn what_a_version_brought_along_stays_with_it() {
        let version = |version, brought: &str| {
            let policy = json!({"key": brought});
            json!({
                "version": version, "source": {"inline": {"manifest": ""}},
                "mergedFrom": {"catalogue": "there", "registry": brought, "signature": policy},
            })
        };
        for (own, expected) in [(None, ["a", "b"]), (Some("own"), ["own", "own"])] {
            let site = source(
                "site",
                json!({
                    "registry": own, "signature": own.map(|key| json!({"key": key})),
                    "addons": [{"name": "web", "versions": [version("1", "a"), version("2", "b")]}],
                }),
            );
            let merged = merge(&[&site], CatalogueClass::Custom).unwrap();
            let versions = merged.addons[0].versions.iter();
            let found = versions.map(|version| {
                let from = version.merged_from.as_ref().unwrap();
                let key = from.signature.as_ref().unwrap().key.as_deref();
                assert_eq!((&*from.catalogue, from.registry.as_deref()), ("site", key));
                key.unwrap()
            });
            assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }
}
