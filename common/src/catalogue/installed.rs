//! Finds the entry that an installation was installed from, as its catalogue lists it now.

use super::{Catalogue, CatalogueEntry, LostEntry, Origin};
use crate::api::catalogue::Deprecation;
use crate::api::installation::AddonInstallation;
use addons_versions::tolerant;

/// Returns the entry with the installed version and id, or `None` if nothing is installed or the version is no longer listed.
#[must_use]
pub fn find_installed<'a>(
    record: &AddonInstallation,
    catalogue: &'a Catalogue,
) -> Option<&'a CatalogueEntry> {
    let mut entries = catalogue.entries.iter();
    entries.find(|entry| is_installed(record, entry))
}

/// Returns the deprecation of the installed version, as its catalogue lists it now.
#[must_use]
pub fn find_deprecation<'a>(
    record: &AddonInstallation,
    catalogue: &'a Catalogue,
) -> Option<&'a Deprecation> {
    find_installed(record, catalogue)?.deprecated.as_ref()
}

/// Returns the installed entry if its catalogue lost it to another one (semantics 2.4).
#[must_use]
pub fn find_lost<'a>(
    record: &AddonInstallation,
    catalogue: &'a Catalogue,
) -> Option<&'a LostEntry> {
    let mut lost = catalogue.lost.iter();
    lost.find(|lost| is_installed(record, &lost.entry))
}

fn is_installed(record: &AddonInstallation, entry: &CatalogueEntry) -> bool {
    let reference = &record.spec.addon_ref;
    let Some(installed) = record.installed() else {
        return false;
    };
    let is_of_origin = match (&reference.catalogue, &*entry.origin) {
        (Some(wanted), Origin::Catalogue { name, .. }) => wanted == name,
        _ => true,
    };
    let version = &entry.version;
    entry.addon == reference.name
        && is_of_origin
        && tolerant::is_same(&version.version, &installed.version)
        && version.id == installed.id
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::catalogue::AddonCatalogue;

    fn catalogue() -> Catalogue {
        let source = json!({"inline": {"manifest": "{}"}});
        let versions = json!([
            {"version": "1.0.0", "source": source}, {"version": "2.0.0", "id": "a", "source": source},
        ]);
        let object: AddonCatalogue = serde_json::from_value(json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
            "metadata": {"name": "team", "namespace": "kubectl-addons"},
            "spec": {"addons": [{"name": "web", "versions": versions}]},
        }))
        .unwrap();
        Catalogue::from_objects(&[object])
    }

    #[test]
    fn what_is_installed_is_found_and_not_what_would_be_chosen() {
        let catalogue = catalogue();
        for (addon, origin, installed, expected) in [
            ("web", "team", None, None),
            ("web", "team", Some(("1.0.0", "")), Some("1.0.0")),
            ("web", "team", Some(("v1.0", "")), Some("1.0.0")),
            ("web", "team", Some(("2.0.0", "a")), Some("2.0.0")),
            ("web", "team", Some(("2.0.0", "b")), None),
            ("web", "team", Some(("3.0.0", "")), None),
            ("web", "other", Some(("1.0.0", "")), None),
            ("shop", "team", Some(("1.0.0", "")), None),
        ] {
            let status =
                installed.map(|(version, id)| json!({"installed": {"version": version, "id": id}}));
            let record: AddonInstallation = serde_json::from_value(json!({
                "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"addonRef": {"name": addon, "catalogue": origin}}, "status": status,
            }))
            .unwrap();
            let found =
                find_installed(&record, &catalogue).map(|entry| entry.version.version.as_str());
            assert_eq!(found, expected, "{addon} {origin} {installed:?}");
        }
    }
}
