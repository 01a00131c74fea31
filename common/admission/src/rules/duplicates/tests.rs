//! Semantics 2, and the messages.

use serde_json::{Value, json};

use super::*;
use crate::fixtures::{addon, catalogue, catalogue_object, facts, source, texts};

/// An add-on `a` with versions given as (version, id).
fn versions(versions: &[(&str, &str)]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(version, id)| json!({"version": version, "id": id, "source": source()}))
        .collect();
    json!([{"name": "a", "versions": versions}])
}

#[test]
fn equal_versions_are_duplicates_unless_both_ids_differ() {
    // (version, id) of two entries of one name; whether they are duplicates
    for (a, b, duplicate) in [
        (("1.0.0", ""), ("v1.0.0", ""), true),
        (("1", ""), ("v1", ""), true),
        (("1.0", ""), ("1.0.0", ""), true),
        (("1.0.0+a", ""), ("1.0.0+b", ""), true),
        (("1.0.0", ""), ("1.0.0-rc.1", ""), false),
        (("1.0.0", ""), ("1.0.1", ""), false),
        (("1.0.0", "x"), ("v1.0.0", "x"), true),
        (("1.0.0", "x"), ("v1.0.0", "y"), false),
        (("1.0.0", "x"), ("v1.0.0", ""), true),
        (("1.0.0", ""), ("v1.0.0", "x"), true),
        (("", "x"), ("", "y"), false),
        (("", "x"), ("", "x"), true),
        (("", ""), ("", "x"), true),
        (("1.8.2.20161223", ""), ("1.8.2.20161223", ""), true),
        (("1.8.2.20161223", ""), ("1.8.2.20161224", ""), false),
    ] {
        let found = find_inside(&catalogue("c", versions(&[a, b])));
        assert_eq!(!found.is_empty(), duplicate, "{a:?} {b:?}: {found:?}");
    }
}

#[test]
fn the_entry_without_id_duplicates_all_and_each_is_named_with_the_first() {
    let found = find_inside(&catalogue(
        "c",
        versions(&[("1", "x"), ("1", "y"), ("1", ""), ("1", "y")]),
    ));
    assert_eq!(
        texts(&found),
        [
            "spec.addons[0].versions[2]: a 1 is already at spec.addons[0].versions[0] (1)",
            "spec.addons[0].versions[3]: a 1 is already at spec.addons[0].versions[1] (1)",
        ]
    );
}

#[test]
fn the_words_of_the_transcript() {
    let found = find_inside(&catalogue(
        "c",
        json!([
            addon("metrics-server", &["0.7.0", "0.8.0", "0.9.0"]),
            addon("b", &["0.9.0"]),
            addon("c", &["0.9.0"]),
            addon("metrics-server", &["0.8.1", "v0.9.0"]),
        ]),
    ));
    assert_eq!(
        texts(&found),
        [
            "spec.addons[3].versions[1]: metrics-server v0.9.0 is already at spec.addons[0].versions[2] (0.9.0)"
        ]
    );
}

/// A source catalogue created in the given second.
fn created(name: &str, second: u8, addons: Value) -> AddonCatalogue {
    catalogue_object(json!({
        "metadata": {
            "name": name,
            "namespace": "kubectl-addons",
            "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
        },
        "spec": {"addons": addons},
    }))
}

#[test]
fn across_source_catalogues_both_places_are_named() {
    let one = json!([addon("a", &["1.0.0"])]);
    let platform = created("platform", 1, one.clone());
    let new = catalogue("custom", json!([addon("b", &["1"]), addon("a", &["v1"])]));
    assert_eq!(
        texts(&find_across(&new, None, &facts(vec![platform.clone()]))),
        [
            "spec.addons[1].versions[0]: a v1 is already in catalogue platform at spec.addons[0].versions[0] (1.0.0)"
        ]
    );
    // Itself, copies and catalogues elsewhere are not other sources.
    let mut copy = platform.clone();
    copy.metadata.labels = Some(
        [(
            "kubectl-addons.dev/derived-from".to_owned(),
            "platform".to_owned(),
        )]
        .into(),
    );
    let mut elsewhere = platform.clone();
    elsewhere.metadata.namespace = Some("team".to_owned());
    for other in [new.clone(), copy, elsewhere] {
        assert_eq!(find_across(&new, None, &facts(vec![other])), []);
    }
}

#[test]
fn of_two_created_at_once_only_the_older_may_keep_its_duplicate() {
    let one = json!([addon("a", &["1.0.0"])]);
    let older = created("z", 1, one.clone());
    let younger = created("b", 2, one.clone());
    let twin = created("y", 1, one);
    let both = facts(vec![older.clone(), younger.clone()]);
    let more = json!([addon("a", &["1.0.0"]), addon("other", &["1"])]);
    let change = |old: &AddonCatalogue| {
        let mut new = old.clone();
        new.spec = catalogue("", more.clone()).spec;
        new
    };
    assert_eq!(find_across(&change(&older), Some(&older), &both), []);
    assert_eq!(
        find_across(&change(&younger), Some(&younger), &both).len(),
        1
    );
    // With the same age, the smaller name wins.
    let twins = facts(vec![older.clone(), twin.clone()]);
    assert_eq!(find_across(&change(&twin), Some(&twin), &twins), []);
    assert_eq!(find_across(&change(&older), Some(&older), &twins).len(), 1);
    // The older catalogue may keep a duplicate, but not create one.
    let mut before = older.clone();
    before.spec.addons.clear();
    assert_eq!(find_across(&change(&before), Some(&before), &both).len(), 1);
}
