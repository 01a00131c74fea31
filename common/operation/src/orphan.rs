//! Installations whose catalogue is gone: they stay as they are, and nothing else waits for them.

use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;

/// What an installation was installed from and is not there any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// No catalogue has the name.
    #[error("catalogue {catalogue} is gone")]
    Catalogue {
        /// Its name.
        catalogue: String,
    },
    /// The catalogue does not have the add-on any more.
    #[error("catalogue {catalogue} has no {addon} any more")]
    Addon {
        /// Name of the catalogue.
        catalogue: String,
        /// Name of the add-on.
        addon: String,
    },
}

/// What is lost of the origin of an installation; `None` where nothing is, or where it is not of a catalogue.
#[must_use]
pub fn lost(record: &AddonInstallation, catalogues: &[AddonCatalogue]) -> Option<Lost> {
    let reference = &record.spec.addon_ref;
    if reference.index.is_some() || reference.directory.is_some() {
        return None;
    }
    let wanted = reference.catalogue.as_ref()?;
    let catalogue = || wanted.clone();
    let mut named = catalogues
        .iter()
        .filter(|object| object.metadata.name.as_ref() == Some(wanted))
        .peekable();
    if named.peek().is_none() {
        return Some(Lost::Catalogue {
            catalogue: catalogue(),
        });
    }
    let mut addons = named.flat_map(|object| &object.spec.addons);
    if addons.any(|addon| addon.name == reference.name) {
        return None;
    }
    Some(Lost::Addon {
        catalogue: catalogue(),
        addon: reference.name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use common::api::catalogue::{Addon, AddonCatalogueSpec};
    use common::api::installation::{AddonInstallationSpec, AddonRef};

    use super::*;

    #[test]
    fn an_orphan_has_lost_its_catalogue_or_its_entry() {
        let spec = AddonCatalogueSpec {
            addons: vec![Addon {
                name: "web".to_owned(),
                ..Addon::default()
            }],
            ..AddonCatalogueSpec::default()
        };
        let catalogues = [AddonCatalogue::new("team", spec)];
        for (addon, catalogue, index, expected) in [
            ("web", Some("team"), None, None),
            ("web", None, None, None),
            ("web", Some("gone"), Some("file:///i.yaml"), None),
            ("web", Some("gone"), None, Some("catalogue gone is gone")),
            (
                "shop",
                Some("team"),
                None,
                Some("catalogue team has no shop any more"),
            ),
        ] {
            let addon_ref = AddonRef {
                name: addon.to_owned(),
                catalogue: catalogue.map(str::to_owned),
                index: index.map(str::to_owned),
                ..AddonRef::default()
            };
            let spec = AddonInstallationSpec {
                addon_ref,
                ..AddonInstallationSpec::default()
            };
            let found = lost(&AddonInstallation::new("a", spec), &catalogues);
            let found = found.map(|lost| lost.to_string());
            assert_eq!(found.as_deref(), expected, "{addon} {catalogue:?}");
        }
    }
}
