//! Duplicates as the webhook finds them, beside a search through all pairs that reads the definition word by word (semantics 2).

#![expect(clippy::unwrap_used, reason = "what a target finds ends it")]

use std::sync::Arc;

use addons_admission::AdmissionFacts;
use addons_admission::rules::duplicates;
use addons_tests::tally::Tally;
use common::api::catalogue::{Addon, AddonCatalogue, AddonCatalogueSpec, AddonVersion};
use common::api::names::SYSTEM_NAMESPACE;
use proptest::collection::vec;
use proptest::prelude::*;

use super::mutant::random;

/// Spellings, and the version that each means.
const VERSIONS: [(&str, &str); 10] = [
    ("1", "1.0.0"),
    ("v1", "1.0.0"),
    ("1.0", "1.0.0"),
    ("1.0.0+build", "1.0.0"),
    ("1.0.0-rc.1", "1.0.0-rc.1"),
    ("v1.0.0-rc.1+x", "1.0.0-rc.1"),
    ("1.0.0-rc.01", "1.0.0-rc.01"),
    ("2", "2.0.0"),
    ("", ""),
    ("odd.one", "odd.one"),
];
const IDS: [&str; 4] = ["", "", "k8s-1.6", "k8s-1.7"];
/// Most entries of one catalogue.
const MAX_ENTRIES: usize = 32;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Name, version and id by their places in the tables.
type Entry = (u8, u8, u8);

fn entry((name, version, id): Entry) -> (&'static str, (&'static str, &'static str), &'static str) {
    let pick = |index: u8, length: usize| usize::from(index) % length;
    (
        NAMES[pick(name, NAMES.len())],
        VERSIONS[pick(version, VERSIONS.len())],
        IDS[pick(id, IDS.len())],
    )
}

fn are_duplicates(a: Entry, b: Entry) -> bool {
    let (a, b) = (entry(a), entry(b));
    let do_ids_differ = !a.2.is_empty() && !b.2.is_empty() && a.2 != b.2;
    a.0 == b.0 && (a.1).1 == (b.1).1 && !do_ids_differ
}

/// A source with one add-on for each entry, so that no two are merged.
fn catalogue(name: &str, second: Option<u8>, entries: &[Entry]) -> AddonCatalogue {
    let mut catalogue = AddonCatalogue::new(name, AddonCatalogueSpec::default());
    catalogue.metadata.namespace = Some(SYSTEM_NAMESPACE.to_owned());
    catalogue.metadata.creation_timestamp = second.map(|second| {
        let time = format!("2026-01-01T00:00:{:02}Z", second % 60);
        serde_json::from_value(time.into()).unwrap()
    });
    let addons = entries.iter().map(|one| {
        let (name, (version, _), id) = entry(*one);
        Addon {
            name: name.to_owned(),
            versions: vec![AddonVersion {
                version: version.to_owned(),
                id: id.to_owned(),
                ..AddonVersion::default()
            }],
            ..Addon::default()
        }
    });
    catalogue.spec.addons = addons.collect();
    catalogue
}

/// The places of the entries that are duplicates of one of those before them that are none, or of `others`.
fn expected(entries: &[Entry], others: &[Entry], inside: bool) -> Vec<String> {
    let mut places = Vec::new();
    let mut kept: Vec<Entry> = others.to_vec();
    for (i, one) in entries.iter().enumerate() {
        if kept.iter().any(|other| are_duplicates(*other, *one)) {
            places.push(format!("spec.addons[{i}].versions[0]"));
        } else if inside {
            kept.push(*one);
        }
    }
    places
}

#[test]
fn duplicate_entries() {
    let mut tally = Tally::new("fuzz::duplicates");
    let entries = || vec(any::<Entry>(), 0..=MAX_ENTRIES);
    let inputs = (entries(), entries(), any::<u8>(), any::<u8>());
    let count = random(inputs, |(ours, theirs, our_second, their_second)| {
        let mine = catalogue("mine", Some(our_second), &ours);
        let other = catalogue("other", Some(their_second), &theirs);
        let facts = AdmissionFacts {
            catalogues: vec![Arc::new(other.into())],
            ..AdmissionFacts::default()
        };
        let found = |problems: Vec<addons_admission::verdict::AdmissionProblem>| -> Vec<String> {
            problems.into_iter().map(|problem| problem.field).collect()
        };
        assert_eq!(
            found(duplicates::find_inside(&mine)),
            expected(&ours, &[], true)
        );
        // A new catalogue loses against all that are there.
        let new = catalogue("mine", None, &ours);
        let across = duplicates::find_across(&new, None, &facts);
        assert_eq!(found(across), expected(&ours, &theirs, false));
        // Of two that were created at once, the older, then the smaller name, keeps what it had.
        let is_younger = our_second % 60 > their_second % 60;
        let lost = if is_younger { theirs.as_slice() } else { &[] };
        let across = duplicates::find_across(&mine, Some(&mine), &facts);
        assert_eq!(found(across), expected(&ours, lost, false));
    });
    tally.note(format!("{count} pairs of catalogues"));
    tally.ran();
}
