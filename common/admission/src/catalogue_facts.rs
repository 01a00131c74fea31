//! Facts about a catalogue, looked up by the name of an add-on. A verdict only parses the entries of its own add-ons. Entries that no
//! verdict has needed yet stay text, which takes a tenth of the memory.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::rules::size;
use common::api::catalogue::{
    Addon, AddonCatalogue, AddonCatalogueSpec, CatalogueClass, SignaturePolicy,
};
use common::catalogue::{Catalogue, CatalogueEntry, Origin};
use common::entrance;

/// Facts about a catalogue.
#[derive(Clone, Debug, Default)]
pub struct CatalogueFacts {
    /// The metadata.
    pub metadata: ObjectMeta,
    /// The class.
    pub class: CatalogueClass,
    /// Whether the catalogue is by reference (semantics 1.5): it lists only names, and the versions are not known here.
    is_reference: bool,
    /// The spec without the add-ons.
    spec: AddonCatalogueSpec,
    addons: BTreeMap<String, ListedAddon>,
    weight: usize,
}

/// A listed add-on.
#[derive(Clone, Debug, Default)]
struct ListedAddon {
    /// The add-on as JSON, with its position in the list. A catalogue that was never admitted may list it twice.
    texts: Vec<(usize, String)>,
    /// The entries, once a verdict has asked for them.
    entries: OnceLock<Vec<CatalogueEntry>>,
}

impl CatalogueFacts {
    /// Returns the name, or an empty string without one.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns the entries of an add-on, in their order.
    #[must_use]
    pub fn entries(&self, addon: &str) -> &[CatalogueEntry] {
        let entries: &[CatalogueEntry] = match self.addons.get(addon) {
            Some(listed) => listed
                .entries
                .get_or_init(|| self.parse_entries(listed))
                .as_slice(),
            None => &[],
        };
        #[cfg(test)]
        tests::looked_at(entries.len());
        entries
    }

    /// Parses the entries of an add-on. The text was parsed before, so errors do not occur.
    fn parse_entries(&self, listed: &ListedAddon) -> Vec<CatalogueEntry> {
        let namespace = self.metadata.namespace.as_deref().unwrap_or_default();
        let mut entries = Vec::new();
        for (place, text) in &listed.texts {
            let Ok(addon) = entrance::from_str::<Addon>(text) else {
                continue;
            };
            let spec = AddonCatalogueSpec {
                addons: vec![addon],
                ..self.spec.clone()
            };
            let origin = Origin::Catalogue {
                namespace: namespace.to_owned(),
                name: self.name().to_owned(),
            };
            let read = Catalogue::from_spec(&spec, origin).entries.into_iter();
            entries.extend(read.enumerate().map(|(version, entry)| CatalogueEntry {
                place: format!("spec.addons[{place}].versions[{version}]"),
                ..entry
            }));
        }
        entries
    }

    /// Returns the bytes that the catalogue counts for, as if all of its entries were parsed.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Returns whether the catalogue lists an add-on, with or without versions.
    #[must_use]
    pub fn lists(&self, addon: &str) -> bool {
        self.addons.contains_key(addon)
    }

    /// Returns whether the catalogue requires signatures of an add-on that it lists.
    #[must_use]
    pub fn requires_signature(&self, addon: &str) -> bool {
        let requires = |policy: &SignaturePolicy| policy.required;
        let is_required = |entry: &CatalogueEntry| entry.signature.as_deref().is_some_and(requires);
        self.lists(addon)
            && (self.spec.signature.as_ref().is_some_and(requires)
                || self.entries(addon).iter().any(is_required))
    }

    /// Returns whether the catalogue lists an add-on by reference.
    #[must_use]
    pub fn refers_to(&self, addon: &str) -> bool {
        self.is_reference && self.lists(addon)
    }

    /// Returns the names of all add-ons, for suggestions in messages.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.addons.keys().map(String::as_str)
    }
}

impl From<AddonCatalogue> for CatalogueFacts {
    fn from(object: AddonCatalogue) -> Self {
        let AddonCatalogue {
            metadata, mut spec, ..
        } = object;
        let mut addons: BTreeMap<String, ListedAddon> = BTreeMap::new();
        let mut weight = 0_usize;
        for (place, mut addon) in std::mem::take(&mut spec.addons).into_iter().enumerate() {
            size::reduce(&mut addon);
            // What was read from JSON or YAML can always be written as JSON.
            let text = serde_json::to_string(&addon).unwrap_or_default();
            weight = weight.saturating_add(size::addon_weight(text.len(), addon.versions.len()));
            let listed = addons.entry(addon.name).or_default();
            listed.texts.push((place, text));
        }
        Self {
            metadata,
            class: spec.class,
            is_reference: spec.reference().is_some(),
            spec,
            addons,
            weight,
        }
    }
}

#[cfg(test)]
mod tests;
