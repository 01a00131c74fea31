//! A catalogue as the rules ask for it: by the name of an add-on. However much it lists, a verdict costs what its own add-ons do, and what no
//! verdict asked for yet is kept as text, which takes a tenth of the memory.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::rules::size;
use common::api::catalogue::{Addon, AddonCatalogue, AddonCatalogueSpec, CatalogueClass};
use common::catalogue::{Catalogue, Entry, Origin};
use common::entrance;

/// What is known of a catalogue.
#[derive(Clone, Debug, Default)]
pub struct CatalogueFacts {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its class.
    pub class: CatalogueClass,
    /// Whether it is by reference: its add-ons are names, and their versions are not known here.
    is_reference: bool,
    /// The specification without the add-ons.
    spec: AddonCatalogueSpec,
    addons: BTreeMap<String, Listed>,
    weight: usize,
}

/// An add-on.
#[derive(Clone, Debug, Default)]
struct Listed {
    /// As JSON, with its place in the list. A catalogue that was never admitted may list it twice.
    texts: Vec<(usize, String)>,
    /// Its entries, since a verdict asked for them.
    entries: OnceLock<Vec<Entry>>,
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
        let entries: &[Entry] = match self.addons.get(addon) {
            Some(listed) => listed.entries.get_or_init(|| self.read(listed)).as_slice(),
            None => &[],
        };
        #[cfg(test)]
        tests::looked_at(entries.len());
        entries
    }

    /// The entries of an add-on; the text is what was read before.
    fn read(&self, listed: &Listed) -> Vec<Entry> {
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
            let read = Catalogue::of_spec(&spec, origin).entries.into_iter();
            entries.extend(read.enumerate().map(|(version, entry)| Entry {
                place: format!("spec.addons[{place}].versions[{version}]"),
                ..entry
            }));
        }
        entries
    }

    /// The bytes that it counts for, once verdicts have asked for all of it.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.weight
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
        let AddonCatalogue {
            metadata, mut spec, ..
        } = object;
        let mut addons: BTreeMap<String, Listed> = BTreeMap::new();
        let mut weight = 0_usize;
        for (place, mut addon) in std::mem::take(&mut spec.addons).into_iter().enumerate() {
            size::reduce(&mut addon);
            // What was read from JSON or YAML can always be written as JSON.
            let text = serde_json::to_string(&addon).unwrap_or_default();
            weight = weight.saturating_add(size::weight(text.len(), addon.versions.len()));
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
