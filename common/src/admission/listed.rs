//! A catalogue as the rules ask for it: by the name of an add-on. However much it lists, a verdict costs what its own add-ons do.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::catalogue::{AddonCatalogue, CatalogueClass};
use crate::catalogue::{Catalogue, Entry, Origin};

/// What is known of a catalogue.
#[derive(Clone, Debug, Default)]
pub struct CatalogueFacts {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its class.
    pub class: CatalogueClass,
    /// Whether it is by reference: its add-ons are names, and their versions are not known here.
    is_reference: bool,
    addons: BTreeMap<String, Vec<Entry>>,
}

impl CatalogueFacts {
    /// Its name; empty where it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The entries of an add-on in their order.
    #[must_use]
    pub fn entries(&self, addon: &str) -> &[Entry] {
        let entries = self.addons.get(addon).map_or(&[][..], Vec::as_slice);
        #[cfg(test)]
        tests::looked_at(entries.len());
        entries
    }

    /// Whether it lists an add-on, be it without a version.
    #[must_use]
    pub fn lists(&self, addon: &str) -> bool {
        self.addons.contains_key(addon)
    }

    /// Whether it lists an add-on by reference.
    #[must_use]
    pub fn refers_to(&self, addon: &str) -> bool {
        self.is_reference && self.lists(addon)
    }

    /// The names of all add-ons: for the sentence about one that is not there.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.addons.keys().map(String::as_str)
    }
}

impl From<AddonCatalogue> for CatalogueFacts {
    fn from(object: AddonCatalogue) -> Self {
        let mut addons: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for addon in &object.spec.addons {
            addons.entry(addon.name.clone()).or_default();
        }
        let origin = Origin::Catalogue {
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            name: object.metadata.name.clone().unwrap_or_default(),
        };
        for entry in Catalogue::of_spec(&object.spec, origin).entries {
            addons.entry(entry.addon.clone()).or_default().push(entry);
        }
        Self {
            metadata: object.metadata,
            class: object.spec.class,
            is_reference: object.spec.reference().is_some(),
            addons,
        }
    }
}

#[cfg(test)]
mod tests;
