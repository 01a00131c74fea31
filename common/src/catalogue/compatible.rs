//! The catalogue of what fits one cluster: a copy in its namespace, whose versions name the catalogue with their content (semantics 1.7).

use super::select::{ClusterVersions, find_misfit};
use super::{Catalogue, CatalogueEntry, Origin};
use crate::api::catalogue::{
    Addon, AddonCatalogue, AddonCatalogueSpec, AddonVersion, CatalogueClass, CatalogueSource,
    Source,
};
use crate::manifest::digest::sha256_trimmed;

/// The maximum size of the copy for a cluster, in bytes of JSON.
pub const MAX_BYTES: usize = 512 << 10;

/// The copy exceeds [`MAX_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {versions} versions that fit take {} KiB, and at most {} KiB are stored for a cluster",
    bytes >> 10, MAX_BYTES >> 10
)]
pub struct TooManyVersions {
    /// The number of versions that fit.
    pub versions: usize,
    /// The size of the copy.
    pub bytes: usize,
}

/// Returns the copy for a cluster: the versions that fit it, in the order of the catalogues, with everything that a user needs to choose
/// one and to fill in its form, but without content. Versions of class Core are left out, because users do not choose them. The same
/// catalogues and cluster give the same copy.
///
/// # Errors
/// [`TooManyVersions`].
pub fn derive(
    catalogue: &Catalogue,
    cluster: &ClusterVersions,
) -> Result<AddonCatalogueSpec, TooManyVersions> {
    let mut spec = AddonCatalogueSpec::default();
    let fitting = catalogue.entries.iter().filter(|entry| {
        entry.class == CatalogueClass::Custom
            && find_misfit(&entry.version.constraints, cluster).is_none()
    });
    let mut versions = 0;
    for (entry, source) in fitting.filter_map(|entry| Some((entry, source_of(entry)?))) {
        let version = reference(entry, source);
        versions += 1;
        match spec.addons.iter_mut().find(|it| it.name == entry.addon) {
            Some(addon) => addon.versions.push(version),
            None => spec.addons.push(Addon {
                name: entry.addon.clone(),
                description: entry.description.clone(),
                support: entry.support,
                versions: vec![version],
                ..Addon::default()
            }),
        }
    }
    let bytes = serde_json::to_vec(&spec).map_or(0, |text| text.len());
    if bytes > MAX_BYTES {
        return Err(TooManyVersions { versions, bytes });
    }
    Ok(spec)
}

/// Returns the catalogues that a copy was derived from, as far as the copy has them. Their versions still have no content.
#[must_use]
pub fn list_sources(copy: &AddonCatalogue) -> Vec<AddonCatalogue> {
    let mut sources: Vec<AddonCatalogue> = Vec::new();
    for addon in &copy.spec.addons {
        for version in &addon.versions {
            let Some(of) = &version.source.catalogue else {
                continue;
            };
            let is_it = |it: &AddonCatalogue| {
                it.metadata.namespace.as_ref() == Some(&of.namespace)
                    && it.metadata.name.as_ref() == Some(&of.name)
            };
            let at = sources.iter().position(is_it).unwrap_or_else(|| {
                let mut source = AddonCatalogue::new(&of.name, AddonCatalogueSpec::default());
                source.metadata.namespace = Some(of.namespace.clone());
                sources.push(source);
                sources.len() - 1
            });
            let Some(source) = sources.get_mut(at) else {
                continue;
            };
            let addons = &mut source.spec.addons;
            match addons.last_mut().filter(|last| last.name == addon.name) {
                Some(last) => last.versions.push(version.clone()),
                None => addons.push(Addon {
                    versions: vec![version.clone()],
                    ..addon.clone()
                }),
            }
        }
    }
    sources
}

fn source_of(entry: &CatalogueEntry) -> Option<CatalogueSource> {
    match &*entry.origin {
        Origin::Catalogue { namespace, name } => Some(CatalogueSource {
            namespace: namespace.clone(),
            name: name.clone(),
        }),
        Origin::Index { .. } | Origin::Installation { .. } | Origin::Directory { .. } => None,
    }
}

/// Returns a version with everything that a user needs to choose it and to fill in its form, and a reference instead of its content.
fn reference(entry: &CatalogueEntry, source: CatalogueSource) -> AddonVersion {
    let version = &entry.version;
    let inline = version.source.inline.as_ref();
    AddonVersion {
        version: version.version.clone(),
        id: version.id.clone(),
        default_namespace: version.default_namespace.clone(),
        template: version.template.clone(),
        source: Source {
            catalogue: Some(source),
            ..Source::default()
        },
        manifest_hash: match entry.verifiable_hash() {
            Some(hash) => Some(hash.to_owned()),
            None => inline.map(|inline| sha256_trimmed(inline.manifest.as_bytes())),
        },
        constraints: version.constraints.clone(),
        values: version.values.clone(),
        requires: version.requires.clone(),
        health_check_exprs: version.health_check_exprs.clone(),
        deprecated: entry.deprecated.clone(),
        ..AddonVersion::default()
    }
}

#[cfg(test)]
mod tests {
    use addons_versions::tolerant;
    use serde_json::{Value, json};

    use super::*;

    fn of(name: &str, class: &str, addon: &str, versions: &[Value]) -> AddonCatalogue {
        let addon = json!({"name": addon, "description": "Serves", "versions": versions});
        let spec = json!({"class": class, "addons": [addon]});
        let mut object = AddonCatalogue::new(name, serde_json::from_value(spec).unwrap());
        object.metadata.namespace = Some("kubectl-addons".to_owned());
        object
    }

    fn version(version: &str, range: &str) -> Value {
        let source = json!({"inline": {"manifest": "a: 1"}});
        json!({
            "version": version, "id": "x", "constraints": {"k8sVersion": range}, "source": source,
            "values": {"replicas": 2}, "selector": {"app": "web"},
            "template": {"method": "go-template", "formSpec": [
                {"displayName": "Replicas", "internalName": "replicas", "type": "number"},
            ]},
        })
    }

    /// The copy of a cluster with this version of Kubernetes.
    fn copy(catalogues: &[AddonCatalogue], kubernetes: &str) -> AddonCatalogue {
        let facts = ClusterVersions {
            kubernetes: Some(tolerant::parse_kubernetes(kubernetes).unwrap()),
            kkp: None,
            profile: None,
        };
        let spec = derive(&Catalogue::from_objects(catalogues), &facts).unwrap();
        AddonCatalogue::new("compatible-addons", spec)
    }

    #[test]
    fn only_what_fits_is_copied_with_its_form_and_by_reference() {
        let web = [version("1.0.0", "<1.30"), version("2.0.0", ">=1.30")];
        let catalogues = [
            of("shop", "Custom", "web", &web),
            of("core", "Core", "dns", &[version("1.0.0", "")]),
        ];
        for (cluster, expected) in [("1.29.1", "1.0.0"), ("1.30.0-gke.1", "2.0.0")] {
            let copy = copy(&catalogues, cluster);
            let [addon] = copy.spec.addons.as_slice() else {
                panic!("{:?}", copy.spec.addons);
            };
            assert_eq!(addon.description.as_deref(), Some("Serves"));
            let [found] = addon.versions.as_slice() else {
                panic!("{:?}", addon.versions);
            };
            assert_eq!(found.version, expected);
            assert_eq!(found.manifest_hash, Some(sha256_trimmed(b"a: 1")));
            assert_eq!(found.template.form_spec.len(), 1);
            assert_eq!(found.values, Some(json!({"replicas": 2})));
            assert_eq!(found.selector, None);
            let source = serde_json::to_value(&found.source).unwrap();
            let by_reference = json!({"namespace": "kubectl-addons", "name": "shop"});
            assert_eq!(source, json!({"catalogue": by_reference}));
        }
    }

    #[test]
    fn a_copy_is_read_as_the_catalogues_that_it_was_derived_from() {
        let catalogues = [
            of("a", "Custom", "web", &[version("1.0.0", "")]),
            of("b", "Custom", "web", &[version("2.0.0", "")]),
        ];
        let sources = list_sources(&copy(&catalogues, "1.36.0"));
        let read = Catalogue::from_objects(&sources);
        let names = |all: &Catalogue| {
            let entries = all.entries.iter();
            let names = entries.map(|it| (it.origin.to_string(), it.version.version.clone()));
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(&read), names(&Catalogue::from_objects(&catalogues)));
    }

    #[test]
    fn a_copy_is_bounded() {
        let many: Vec<Value> = (0..3000)
            .map(|i| version(&format!("1.0.{i}"), ""))
            .collect();
        let catalogue = Catalogue::from_objects(&[of("shop", "Custom", "web", &many)]);
        let error = derive(&catalogue, &ClusterVersions::default()).unwrap_err();
        assert_eq!(error.versions, 3000);
    }
}
