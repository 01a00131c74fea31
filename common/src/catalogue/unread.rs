//! Catalogues whose entries are unknown, because the object or the referenced file cannot be read.

use super::{held, is_copy, split_offering};
use crate::api::catalogue::{AddonCatalogue, CatalogueClass};

/// A catalogue that cannot be read, or whose referenced file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadCatalogue {
    /// The name of the catalogue.
    pub catalogue: String,
    /// The class of the catalogue.
    pub class: CatalogueClass,
    /// The names of the add-ons that it lists.
    pub addons: Vec<String>,
    /// The catalogues that lose shared entries to it, so that their offer is unknown, too.
    pub losers: Vec<String>,
    /// The reason.
    pub why: String,
}

impl UnreadCatalogue {
    /// Whether `catalogue` loses the entries that both list to this one.
    #[must_use]
    pub fn takes_from(&self, catalogue: &str) -> bool {
        self.losers.iter().any(|loser| loser == catalogue)
    }
}

/// Returns the names of the sources that lose the entries they share with `catalogue`. A copy takes nothing from a source.
#[must_use]
pub fn list_losers(catalogue: &AddonCatalogue, objects: &[AddonCatalogue]) -> Vec<String> {
    if is_copy(&catalogue.metadata) {
        return Vec::new();
    }
    let (_, sources) = split_offering(objects);
    let is_later = |other: &&AddonCatalogue| {
        let (first, second) = (&catalogue.metadata, &other.metadata);
        held::compare_precedence((first, catalogue.spec.class), (second, other.spec.class)).is_lt()
    };
    let later = sources.into_iter().filter(is_later);
    later
        .filter_map(|other| other.metadata.name.clone())
        .collect()
}
