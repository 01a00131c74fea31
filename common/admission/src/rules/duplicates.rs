//! Finds duplicate entries (semantics 2.1): equal name and equal version, unless both carry an id and the ids differ.

use std::collections::HashSet;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::catalogue;
use crate::AdmissionFacts;
use crate::catalogue_facts::CatalogueFacts;
use crate::verdict::AdmissionProblem;
use common::api::catalogue::{AddonCatalogue, AddonVersion, CatalogueClass};
use common::catalogue::precedence::{self, compare_age};

/// The place of an entry, and how its version is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EntryPlace<'a> {
    at: EntryLocation<'a>,
    spelling: &'a str,
}

/// The catalogue and the position of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryLocation<'a> {
    /// In the catalogue that is checked.
    ThisCatalogue(catalogue::VersionPlace),
    /// In another catalogue.
    OtherCatalogue { catalogue: &'a str, place: &'a str },
}

impl fmt::Display for EntryLocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThisCatalogue(place) => place.fmt(f),
            Self::OtherCatalogue { catalogue, place } => {
                write!(f, "in catalogue {catalogue} at {place}")
            }
        }
    }
}

/// All entries seen so far.
type SeenEntries<'a> = precedence::EntryIndex<'a, EntryPlace<'a>>;
/// An entry with its place.
type PlacedEntry<'a> = precedence::ComparedEntry<'a, EntryPlace<'a>>;

fn new_placed_entry<'a>(
    name: &'a str,
    entry: &'a AddonVersion,
    at: EntryLocation<'a>,
) -> PlacedEntry<'a> {
    let spelling = &entry.version;
    PlacedEntry::new(name, entry, EntryPlace { at, spelling })
}

/// Returns every entry of the catalogue that is checked.
fn list_entries(catalogue: &AddonCatalogue) -> impl Iterator<Item = PlacedEntry<'_>> {
    let versions = catalogue::versions(catalogue);
    versions.map(|(place, name, entry)| {
        new_placed_entry(name, entry, EntryLocation::ThisCatalogue(place))
    })
}

/// Returns the entries of an add-on in another catalogue.
fn list_other_entries<'a>(
    catalogue: &'a CatalogueFacts,
    addon: &str,
) -> impl Iterator<Item = PlacedEntry<'a>> {
    catalogue.entries(addon).iter().map(|entry| {
        let at = EntryLocation::OtherCatalogue {
            catalogue: catalogue.name(),
            place: &entry.place,
        };
        new_placed_entry(&entry.addon, &entry.version, at)
    })
}

/// Returns the duplicates inside one catalogue, each with the place of the earlier entry.
#[must_use]
pub fn find_inside(catalogue: &AddonCatalogue) -> Vec<AdmissionProblem> {
    let mut seen = SeenEntries::with_capacity(catalogue::versions(catalogue).count());
    let mut problems = Vec::new();
    for entry in list_entries(catalogue) {
        match seen.find_earlier(&entry) {
            Some(earlier) => problems.push(problem(entry.addon(), entry.place, earlier)),
            None => seen.insert(entry),
        }
    }
    problems
}

/// Returns the duplicates of entries in other source catalogues.
///
/// Of two catalogues that were created at the same time, the older one wins, then the one with the smaller name (semantics 2.4): the
/// winner may keep a duplicate that it had before (`old`), the loser may not. A catalogue of class Core takes its names from those of
/// class Custom.
#[must_use]
pub fn find_across(
    catalogue: &AddonCatalogue,
    old: Option<&AddonCatalogue>,
    facts: &AdmissionFacts,
) -> Vec<AdmissionProblem> {
    let addons = catalogue.spec.addons.iter();
    let names: HashSet<&str> = addons.map(|addon| addon.name.as_str()).collect();
    let mut seen = SeenEntries::with_capacity(0);
    let mut losers = SeenEntries::with_capacity(0);
    let takes = |other: &CatalogueFacts| {
        catalogue.spec.class == CatalogueClass::Core && other.class == CatalogueClass::Custom
    };
    let sources = facts.sources().filter(|other| !takes(other));
    for other in sources.filter(|other| !is_same(&other.metadata, &catalogue.metadata)) {
        let wins = compare_age(&catalogue.metadata, &other.metadata).is_lt();
        let into = if old.is_some() && wins {
            &mut losers
        } else {
            &mut seen
        };
        for entry in names
            .iter()
            .flat_map(|name| list_other_entries(other, name))
        {
            into.insert(entry);
        }
    }
    // Usually, other catalogues list other add-ons.
    if seen.is_empty() && losers.is_empty() {
        return Vec::new();
    }
    let mut before = SeenEntries::with_capacity(0);
    for entry in old.into_iter().flat_map(list_entries) {
        before.insert(entry);
    }
    list_entries(catalogue)
        .filter_map(|entry| {
            let earlier = seen.find_earlier(&entry).or_else(|| {
                losers
                    .find_earlier(&entry)
                    .filter(|_| before.find_earlier(&entry).is_none())
            })?;
            Some(problem(entry.addon(), entry.place, earlier))
        })
        .collect()
}

/// Returns whether both are the same object, by namespace and name.
pub(super) fn is_same(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    a.namespace == b.namespace && a.name == b.name
}

/// `spec.addons[3].versions[1]: metrics-server v0.9.0 is already at spec.addons[0].versions[2] (0.9.0)`
fn problem(name: &str, place: EntryPlace<'_>, earlier: EntryPlace<'_>) -> AdmissionProblem {
    let spelt = |spelling: &str| match spelling {
        "" => String::new(),
        spelling => format!(" {spelling}"),
    };
    let spelling = match earlier.spelling {
        "" => "no version",
        spelling => spelling,
    };
    let earlier_at = match earlier.at {
        EntryLocation::ThisCatalogue(_) => format!("at {}", earlier.at),
        EntryLocation::OtherCatalogue { .. } => earlier.at.to_string(),
    };
    AdmissionProblem::invalid(
        "duplicate",
        place.at.to_string(),
        format!(
            "{name}{} is already {earlier_at} ({spelling})",
            spelt(place.spelling)
        ),
    )
}

#[cfg(test)]
mod tests;
