//! Which entries are duplicates (semantics 2): equal name and equal version, unless both carry an id and these differ.

use std::collections::{HashMap, HashSet};

use semver::{BuildMetadata, Version};

use crate::admission::Facts;
use crate::admission::verdict::Problem;
use crate::api::catalogue::{AddonCatalogue, AddonVersion};
use addons_versions::tolerant;

/// A version as duplicates compare it: `v1`, `1` and `1.0.0` are equal, build metadata is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum VersionKey {
    /// A readable version.
    Version(Version),
    /// Any other text, or none.
    Text(String),
}

/// The key of a version as it is written.
fn version_key(version: &str) -> VersionKey {
    match tolerant::parse(version) {
        Ok(mut version) => {
            version.build = BuildMetadata::EMPTY;
            VersionKey::Version(version)
        }
        Err(_) => VersionKey::Text(version.trim().to_owned()),
    }
}

/// The place of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place<'a> {
    catalogue: Option<&'a str>,
    addon: usize,
    version: usize,
    spelling: &'a str,
}

/// All entries seen so far, by name and version.
#[derive(Default)]
struct Seen<'a> {
    entries: HashMap<(&'a str, VersionKey), Group<'a>>,
}

/// The entries of one name and version.
#[derive(Default)]
struct Group<'a> {
    first: Option<Place<'a>>,
    without_id: Option<Place<'a>>,
    by_id: HashMap<&'a str, Place<'a>>,
}

impl<'a> Seen<'a> {
    /// The earlier entry that this one duplicates.
    fn earlier(&self, name: &'a str, version: &'a AddonVersion) -> Option<Place<'a>> {
        let group = self.entries.get(&(name, version_key(&version.version)))?;
        if version.id.is_empty() {
            group.first
        } else {
            group
                .by_id
                .get(version.id.as_str())
                .copied()
                .or(group.without_id)
        }
    }

    fn insert(&mut self, name: &'a str, version: &'a AddonVersion, place: Place<'a>) {
        let key = (name, version_key(&version.version));
        let group = self.entries.entry(key).or_default();
        group.first.get_or_insert(place);
        if version.id.is_empty() {
            group.without_id.get_or_insert(place);
        } else {
            group.by_id.entry(&version.id).or_insert(place);
        }
    }
}

/// Every entry of a catalogue with its place.
fn entries(
    catalogue: &AddonCatalogue,
    named: bool,
) -> impl Iterator<Item = (&str, &AddonVersion, Place<'_>)> {
    let name = catalogue.metadata.name.as_deref().filter(|_| named);
    let addons = catalogue.spec.addons.iter().enumerate();
    addons.flat_map(move |(i, addon)| {
        addon.versions.iter().enumerate().map(move |(j, version)| {
            let place = Place {
                catalogue: name,
                addon: i,
                version: j,
                spelling: &version.version,
            };
            (addon.name.as_str(), version, place)
        })
    })
}

/// Duplicates inside one catalogue, each named with the earlier place.
#[must_use]
pub fn inside(catalogue: &AddonCatalogue) -> Vec<Problem> {
    let mut seen = Seen::default();
    let mut problems = Vec::new();
    for (name, version, place) in entries(catalogue, false) {
        match seen.earlier(name, version) {
            Some(earlier) => problems.push(problem(name, place, earlier)),
            None => seen.insert(name, version, place),
        }
    }
    problems
}

/// Duplicates of entries in other source catalogues.
///
/// Of two catalogues that were created at once the older, then the one with the smaller name, wins (semantics 2): the
/// winner may keep a duplicate that it had before (`old`), the loser may not.
#[must_use]
pub fn across(
    catalogue: &AddonCatalogue,
    old: Option<&AddonCatalogue>,
    facts: &Facts,
) -> Vec<Problem> {
    // Of a large catalogue beside this one, the versions of other add-ons are not even read.
    let addons = catalogue.spec.addons.iter();
    let names: HashSet<&str> = addons.map(|addon| addon.name.as_str()).collect();
    let mut seen = Seen::default();
    let mut losers = Seen::default();
    for other in facts.sources().filter(|other| !is_same(other, catalogue)) {
        let into = if old.is_some() && wins(catalogue, other) {
            &mut losers
        } else {
            &mut seen
        };
        let same = entries(other, true).filter(|(name, _, _)| names.contains(name));
        for (name, version, place) in same {
            into.insert(name, version, place);
        }
    }
    let mut before = Seen::default();
    for (name, version, place) in old.into_iter().flat_map(|old| entries(old, false)) {
        before.insert(name, version, place);
    }
    entries(catalogue, false)
        .filter_map(|(name, version, place)| {
            let earlier = seen.earlier(name, version).or_else(|| {
                losers
                    .earlier(name, version)
                    .filter(|_| before.earlier(name, version).is_none())
            })?;
            Some(problem(name, place, earlier))
        })
        .collect()
}

/// Whether `a` is older than `b`, or equally old and first by name.
fn wins(a: &AddonCatalogue, b: &AddonCatalogue) -> bool {
    let age = |catalogue: &AddonCatalogue| {
        let created = catalogue.metadata.creation_timestamp.as_ref();
        (
            created.is_none(),
            created.map(|time| time.0),
            catalogue.metadata.name.clone(),
        )
    };
    age(a) < age(b)
}

/// The same object, by namespace and name.
pub(super) fn is_same(a: &AddonCatalogue, b: &AddonCatalogue) -> bool {
    a.metadata.namespace == b.metadata.namespace && a.metadata.name == b.metadata.name
}

/// `spec.addons[3].versions[1]: metrics-server v0.9.0 is already at spec.addons[0].versions[2] (0.9.0)`
fn problem(name: &str, place: Place<'_>, earlier: Place<'_>) -> Problem {
    let spelt = |spelling: &str| match spelling {
        "" => String::new(),
        spelling => format!(" {spelling}"),
    };
    let catalogue = match earlier.catalogue {
        Some(catalogue) => format!("in catalogue {catalogue} "),
        None => String::new(),
    };
    let spelling = match earlier.spelling {
        "" => "no version",
        spelling => spelling,
    };
    Problem::invalid(
        "duplicate",
        format!("spec.addons[{}].versions[{}]", place.addon, place.version),
        format!(
            "{name}{} is already {catalogue}at spec.addons[{}].versions[{}] ({spelling})",
            spelt(place.spelling),
            earlier.addon,
            earlier.version
        ),
    )
}

#[cfg(test)]
mod tests;
