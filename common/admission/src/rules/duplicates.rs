//! Finds duplicate entries (semantics 2.1): equal name and equal version, unless both carry an id and the ids differ.

use std::collections::HashSet;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::catalogue;
use crate::Facts;
use crate::listed::CatalogueFacts;
use crate::verdict::Problem;
use common::api::catalogue::{AddonCatalogue, AddonVersion, CatalogueClass};
use common::catalogue::held::{self, by_age};

/// The place of an entry, and how its version is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place<'a> {
    at: At<'a>,
    spelling: &'a str,
}

/// The catalogue and the position of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At<'a> {
    /// In the catalogue that is checked.
    Here(catalogue::Place),
    /// In another catalogue.
    There { catalogue: &'a str, place: &'a str },
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(place) => place.fmt(f),
            Self::There { catalogue, place } => write!(f, "in catalogue {catalogue} at {place}"),
        }
    }
}

/// All entries seen so far.
type Seen<'a> = held::Seen<'a, Place<'a>>;
/// An entry with its place.
type Compared<'a> = held::Compared<'a, Place<'a>>;

fn compared<'a>(name: &'a str, entry: &'a AddonVersion, at: At<'a>) -> Compared<'a> {
    let spelling = &entry.version;
    Compared::new(name, entry, Place { at, spelling })
}

/// Returns every entry of the catalogue that is checked.
fn entries(catalogue: &AddonCatalogue) -> impl Iterator<Item = Compared<'_>> {
    let versions = catalogue::versions(catalogue);
    versions.map(|(place, name, entry)| compared(name, entry, At::Here(place)))
}

/// Returns the entries of an add-on in another catalogue.
fn others<'a>(catalogue: &'a CatalogueFacts, addon: &str) -> impl Iterator<Item = Compared<'a>> {
    catalogue.entries(addon).iter().map(|entry| {
        let at = At::There {
            catalogue: catalogue.name(),
            place: &entry.place,
        };
        compared(&entry.addon, &entry.version, at)
    })
}

/// Returns the duplicates inside one catalogue, each with the place of the earlier entry.
#[must_use]
pub fn inside(catalogue: &AddonCatalogue) -> Vec<Problem> {
    let mut seen = Seen::with_capacity(catalogue::versions(catalogue).count());
    let mut problems = Vec::new();
    for entry in entries(catalogue) {
        match seen.earlier(&entry) {
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
pub fn across(
    catalogue: &AddonCatalogue,
    old: Option<&AddonCatalogue>,
    facts: &Facts,
) -> Vec<Problem> {
    let addons = catalogue.spec.addons.iter();
    let names: HashSet<&str> = addons.map(|addon| addon.name.as_str()).collect();
    let mut seen = Seen::with_capacity(0);
    let mut losers = Seen::with_capacity(0);
    let takes = |other: &CatalogueFacts| {
        catalogue.spec.class == CatalogueClass::Core && other.class == CatalogueClass::Custom
    };
    let sources = facts.sources().filter(|other| !takes(other));
    for other in sources.filter(|other| !is_same(&other.metadata, &catalogue.metadata)) {
        let wins = by_age(&catalogue.metadata, &other.metadata).is_lt();
        let into = if old.is_some() && wins {
            &mut losers
        } else {
            &mut seen
        };
        for entry in names.iter().flat_map(|name| others(other, name)) {
            into.insert(entry);
        }
    }
    // Usually, other catalogues list other add-ons.
    if seen.is_empty() && losers.is_empty() {
        return Vec::new();
    }
    let mut before = Seen::with_capacity(0);
    for entry in old.into_iter().flat_map(entries) {
        before.insert(entry);
    }
    entries(catalogue)
        .filter_map(|entry| {
            let earlier = seen.earlier(&entry).or_else(|| {
                losers
                    .earlier(&entry)
                    .filter(|_| before.earlier(&entry).is_none())
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
fn problem(name: &str, place: Place<'_>, earlier: Place<'_>) -> Problem {
    let spelt = |spelling: &str| match spelling {
        "" => String::new(),
        spelling => format!(" {spelling}"),
    };
    let spelling = match earlier.spelling {
        "" => "no version",
        spelling => spelling,
    };
    let earlier_at = match earlier.at {
        At::Here(_) => format!("at {}", earlier.at),
        At::There { .. } => earlier.at.to_string(),
    };
    Problem::invalid(
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
