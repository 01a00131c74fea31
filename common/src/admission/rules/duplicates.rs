//! Which entries are duplicates (semantics 2): equal name and equal version, unless both carry an id and these differ.

use std::collections::{HashMap, HashSet};
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use semver::{BuildMetadata, Version};

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
    Here { addon: usize, version: usize },
    /// In another one.
    There { catalogue: &'a str, place: &'a str },
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here { addon, version } => write!(f, "spec.addons[{addon}].versions[{version}]"),
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

/// Every entry of the catalogue that is judged, with its place.
fn entries(catalogue: &AddonCatalogue) -> impl Iterator<Item = (&str, &AddonVersion, Place<'_>)> {
    let addons = catalogue.spec.addons.iter().enumerate();
    addons.flat_map(|(addon, listed)| {
        let versions = listed.versions.iter().enumerate();
        versions.map(move |(version, entry)| {
            let place = Place {
                at: At::Here { addon, version },
                spelling: &entry.version,
            };
            (listed.name.as_str(), entry, place)
        })
    })
}

/// The entries of an add-on in another catalogue.
fn others<'a>(
    catalogue: &'a CatalogueFacts,
    addon: &str,
) -> impl Iterator<Item = (&'a str, &'a AddonVersion, Place<'a>)> {
    catalogue.entries(addon).iter().map(|entry| {
        let place = Place {
            at: At::There {
                catalogue: catalogue.name(),
                place: &entry.place,
            },
            spelling: &entry.version.version,
        };
        (entry.addon.as_str(), &entry.version, place)
    })
}

/// Duplicates inside one catalogue, each named with the earlier place.
#[must_use]
pub fn inside(catalogue: &AddonCatalogue) -> Vec<Problem> {
    let mut seen = Seen::default();
    let mut problems = Vec::new();
    for (name, version, place) in entries(catalogue) {
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
        for (name, version, place) in names.iter().flat_map(|name| others(other, name)) {
            into.insert(name, version, place);
        }
    }
    let mut before = Seen::default();
    for (name, version, place) in old.into_iter().flat_map(entries) {
        before.insert(name, version, place);
    }
    entries(catalogue)
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
        At::Here { .. } => format!("at {}", earlier.at),
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
