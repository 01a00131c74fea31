//! Finds installations whose catalogue, add-on or version no longer exists. They stay installed, and nothing else waits for them.

use crate::api::catalogue::AddonCatalogue;
use crate::api::installation::AddonInstallation;
use crate::catalogue::{Catalogue, describe_lost_entry, installed};

/// Why the origin of an installation no longer exists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingOrigin {
    /// There is no catalogue with this name.
    #[error("catalogue {catalogue} no longer exists")]
    Catalogue {
        /// The name of the catalogue.
        catalogue: String,
    },
    /// The catalogue no longer lists the add-on.
    #[error("catalogue {catalogue} no longer has {addon}")]
    Addon {
        /// The name of the catalogue.
        catalogue: String,
        /// The name of the add-on.
        addon: String,
    },
}

/// An installed version that its catalogue no longer offers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", match (catalogue, holder) {
    (Some(name), Some(holder)) => describe_lost_entry(holder, addon, version, name),
    (Some(name), None) => format!("catalogue {name} no longer has {addon} {version}"),
    (None, _) => format!("no catalogue has {addon} {version}"),
})]
pub struct UnlistedVersion {
    /// The name of the catalogue, or `None` if the installation names none.
    pub catalogue: Option<String>,
    /// The name of the add-on.
    pub addon: String,
    /// The version or, if it has none, its id.
    pub version: String,
    /// The catalogue that holds the version, if the installation's catalogue lost it (semantics 2.4).
    pub holder: Option<String>,
}

/// Returns what no longer exists of an installation's origin. Returns `None` if all of it exists, or if the origin is not a
/// catalogue.
#[must_use]
pub fn find_missing_origin(
    record: &AddonInstallation,
    catalogues: &[AddonCatalogue],
) -> Option<MissingOrigin> {
    let reference = &record.spec.addon_ref;
    if !reference.is_of_catalogue() {
        return None;
    }
    let wanted = reference.catalogue.as_ref()?;
    let catalogue = || wanted.clone();
    let mut named = catalogues
        .iter()
        .filter(|object| object.metadata.name.as_ref() == Some(wanted))
        .peekable();
    if named.peek().is_none() {
        return Some(MissingOrigin::Catalogue {
            catalogue: catalogue(),
        });
    }
    let mut addons = named.flat_map(|object| &object.spec.addons);
    if addons.any(|addon| addon.name == reference.name) {
        return None;
    }
    Some(MissingOrigin::Addon {
        catalogue: catalogue(),
        addon: reference.name.clone(),
    })
}

/// Returns the installed version if its catalogue no longer lists it, or lost it to another catalogue (semantics 1.8, 2.4).
/// `catalogue` holds the entries of all catalogues. An installation from an index is never unlisted, because an index lists only the
/// newest versions, nor is one that names its content itself.
#[must_use]
pub fn find_unlisted(record: &AddonInstallation, catalogue: &Catalogue) -> Option<UnlistedVersion> {
    let reference = &record.spec.addon_ref;
    if !reference.is_of_catalogue() {
        return None;
    }
    let installed = record.installed()?;
    // A catalogue that cannot be read may still list the version.
    let unread = catalogue.find_unread(&reference.name, reference.catalogue.as_deref());
    if unread.is_some() || installed::find_installed(record, catalogue).is_some() {
        return None;
    }
    let version = match installed.version.as_str() {
        "" => &installed.id,
        version => version,
    };
    Some(UnlistedVersion {
        catalogue: reference.catalogue.clone(),
        addon: reference.name.clone(),
        version: version.to_owned(),
        holder: installed::find_lost(record, catalogue).map(|lost| lost.holder.clone()),
    })
}

#[cfg(test)]
mod tests {
    use crate::api::installation::{AddonInstallationStatus, AddonRef, Installed};
    use serde_json::json;

    use super::*;

    /// Catalogue `team`, which lists `web` in version 1.0.0.
    fn team() -> AddonCatalogue {
        let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": ""}}});
        let spec = json!({"addons": [{"name": "web", "versions": [version]}]});
        AddonCatalogue::new("team", serde_json::from_value(spec).unwrap())
    }

    fn record(addon: &str, catalogue: Option<&str>, index: Option<&str>) -> AddonInstallation {
        let mut record = AddonInstallation::new("a", Default::default());
        record.spec.addon_ref = AddonRef {
            name: addon.to_owned(),
            catalogue: catalogue.map(str::to_owned),
            index: index.map(str::to_owned),
            ..AddonRef::default()
        };
        record
    }

    #[test]
    fn a_version_that_its_catalogue_lost_is_unlisted() {
        let catalogue = Catalogue::from_objects(&[team()]);
        let of_index = Some("https://example.org/i.yaml");
        for (name, index, version, expected) in [
            (Some("team"), None, Some("1.0.0"), None),
            (Some("team"), None, None, None),
            (Some("team"), of_index, Some("2.0.0"), None),
            (
                Some("team"),
                None,
                Some("2.0.0"),
                Some("catalogue team no longer has web 2.0.0"),
            ),
            (
                None,
                None,
                Some("2.0.0"),
                Some("no catalogue has web 2.0.0"),
            ),
        ] {
            let mut record = record("web", name, index);
            record.status = version.map(|version| AddonInstallationStatus {
                installed: Some(Installed {
                    version: version.to_owned(),
                    ..Installed::default()
                }),
                ..AddonInstallationStatus::default()
            });
            let found = find_unlisted(&record, &catalogue).map(|unlisted| unlisted.to_string());
            assert_eq!(found.as_deref(), expected, "{name:?} {index:?} {version:?}");
        }
    }

    #[test]
    fn a_version_that_another_catalogue_holds_is_not_gone() {
        let mut other = team();
        other.metadata.name = Some("other".to_owned());
        let catalogue = Catalogue::from_objects(&[team(), other]);
        let mut record = record("web", Some("team"), None);
        record.status = Some(AddonInstallationStatus {
            installed: Some(Installed {
                version: "1.0.0".to_owned(),
                ..Installed::default()
            }),
            ..AddonInstallationStatus::default()
        });
        // Without a time of creation the first by name counts as the older one.
        let found = find_unlisted(&record, &catalogue).map(|unlisted| unlisted.to_string());
        let held = "catalogue other holds web 1.0.0, which catalogue team lists as well";
        assert_eq!(found.as_deref(), Some(held));
        record.spec.addon_ref.catalogue = None;
        assert_eq!(find_unlisted(&record, &catalogue), None);
    }

    #[test]
    fn an_orphan_has_lost_its_catalogue_or_its_entry() {
        for (addon, catalogue, index, expected) in [
            ("web", Some("team"), None, None),
            ("web", None, None, None),
            ("web", Some("gone"), Some("file:///i.yaml"), None),
            (
                "web",
                Some("gone"),
                None,
                Some("catalogue gone no longer exists"),
            ),
            (
                "shop",
                Some("team"),
                None,
                Some("catalogue team no longer has shop"),
            ),
        ] {
            let found = find_missing_origin(&record(addon, catalogue, index), &[team()]);
            let found = found.map(|lost| lost.to_string());
            assert_eq!(found.as_deref(), expected, "{addon} {catalogue:?}");
        }
    }
}
