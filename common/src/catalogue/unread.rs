//! Catalogues that cannot be read, or are by reference and their file cannot be read: what they hold is not known.

use super::{held, is_copy, offering};
use crate::api::catalogue::{AddonCatalogue, CatalogueClass};

/// A catalogue that cannot be read, or is by reference and its file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Its name.
    pub catalogue: String,
    /// Its class.
    pub class: CatalogueClass,
    /// The names of its add-ons.
    pub addons: Vec<String>,
    /// The catalogues that lose to it what both list: what they offer is not known either.
    pub losers: Vec<String>,
    /// Why.
    pub why: String,
}

impl Unread {
    /// Whether a catalogue loses to it what both list.
    #[must_use]
    pub fn takes_from(&self, catalogue: &str) -> bool {
        self.losers.iter().any(|loser| loser == catalogue)
    }
}

/// The names of the sources that lose to `catalogue` what both list; a copy takes nothing from them.
#[must_use]
pub fn losers(catalogue: &AddonCatalogue, objects: &[AddonCatalogue]) -> Vec<String> {
    if is_copy(&catalogue.metadata) {
        return Vec::new();
    }
    let (_, sources) = offering(objects);
    let is_later = |other: &&AddonCatalogue| {
        let (first, second) = (&catalogue.metadata, &other.metadata);
        held::precedence((first, catalogue.spec.class), (second, other.spec.class)).is_lt()
    };
    let later = sources.into_iter().filter(is_later);
    later
        .filter_map(|other| other.metadata.name.clone())
        .collect()
}
