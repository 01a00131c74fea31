//! Which entries are duplicates (semantics 2): equal name and equal version, unless both carry an id and these differ.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use semver::{BuildMetadata, Version};

use super::catalogue;
use crate::admission::Facts;
use crate::admission::listed::CatalogueFacts;
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
    at: At<'a>,
    spelling: &'a str,
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At<'a> {
    /// In the catalogue that is judged.
    Here(catalogue::Place),
    /// In another one.
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
    by_id: BTreeMap<&'a str, Place<'a>>,
}

impl<'a> Seen<'a> {
    /// The earlier entry that this one duplicates.
    fn earlier(&self, entry: &Compared<'a>) -> Option<Place<'a>> {
        let group = self.entries.get(&entry.key)?;
        match entry.id {
            "" => group.first,
            id => group.by_id.get(id).copied().or(group.without_id),
        }
    }

    fn insert(&mut self, Compared { key, id, place }: Compared<'a>) {
        let group = self.entries.entry(key).or_default();
        group.first.get_or_insert(place);
        if id.is_empty() {
            group.without_id.get_or_insert(place);
        } else {
            group.by_id.entry(id).or_insert(place);
        }
    }
}

/// An entry as far as duplicates compare it, with its place.
struct Compared<'a> {
    key: (&'a str, VersionKey),
    id: &'a str,
    place: Place<'a>,
}

impl<'a> Compared<'a> {
    fn new(name: &'a str, entry: &'a AddonVersion, at: At<'a>) -> Self {
        Self {
            key: (name, version_key(&entry.version)),
            id: &entry.id,
            place: Place {
                at,
                spelling: &entry.version,
            },
        }
    }
}

/// Every entry of the catalogue that is judged.
fn entries(catalogue: &AddonCatalogue) -> impl Iterator<Item = Compared<'_>> {
    let versions = catalogue::versions(catalogue);
    versions.map(|(place, name, entry)| Compared::new(name, entry, At::Here(place)))
}

/// The entries of an add-on in another catalogue.
fn others<'a>(catalogue: &'a CatalogueFacts, addon: &str) -> impl Iterator<Item = Compared<'a>> {
    catalogue.entries(addon).iter().map(|entry| {
        let at = At::There {
            catalogue: catalogue.name(),
            place: &entry.place,
        };
        Compared::new(&entry.addon, &entry.version, at)
    })
}

/// Duplicates inside one catalogue, each named with the earlier place.
#[must_use]
pub fn inside(catalogue: &AddonCatalogue) -> Vec<Problem> {
    let mut seen = Seen {
        entries: HashMap::with_capacity(catalogue::versions(catalogue).count()),
    };
    let mut problems = Vec::new();
    for entry in entries(catalogue) {
        match seen.earlier(&entry) {
            Some(earlier) => problems.push(problem(entry.key.0, entry.place, earlier)),
            None => seen.insert(entry),
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
    let addons = catalogue.spec.addons.iter();
    let names: HashSet<&str> = addons.map(|addon| addon.name.as_str()).collect();
    let mut seen = Seen::default();
    let mut losers = Seen::default();
    let sources = facts.sources();
    for other in sources.filter(|other| !is_same(&other.metadata, &catalogue.metadata)) {
        let into = if old.is_some() && wins(&catalogue.metadata, &other.metadata) {
            &mut losers
        } else {
            &mut seen
        };
        for entry in names.iter().flat_map(|name| others(other, name)) {
            into.insert(entry);
        }
    }
    // The usual case: other catalogues list other add-ons.
    if seen.entries.is_empty() && losers.entries.is_empty() {
        return Vec::new();
    }
    let mut before = Seen::default();
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
            Some(problem(entry.key.0, entry.place, earlier))
        })
        .collect()
}

/// Whether `a` is older than `b`, or equally old and first by name.
fn wins(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    let age = |catalogue: &ObjectMeta| {
        let created = catalogue.creation_timestamp.as_ref();
        (
            created.is_none(),
            created.map(|time| time.0),
            catalogue.name.clone(),
        )
    };
    age(a) < age(b)
}

/// The same object, by namespace and name.
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
