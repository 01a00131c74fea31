//! The entries that a verdict reads do not grow with the size of catalogues.

use std::cell::Cell;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::fixtures::{catalogue, core_installation, facts, installation, requester};
use crate::rules::catalogue::lost_to_others;
use crate::validate;
use crate::{AdmissionFacts, mutate};
use common::api::catalogue::AddonCatalogue;

thread_local! {
    static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
}

/// Counts entries that a rule was given.
pub(super) fn looked_at(entries: usize) {
    LOOKED_AT.set(LOOKED_AT.get() + entries);
}

/// Returns the number of entries that are read meanwhile.
fn count(judge: impl FnOnce()) -> usize {
    LOOKED_AT.set(0);
    judge();
    LOOKED_AT.get()
}

/// A source with `addons` add-ons of ten versions, and `web` among them.
fn source_of(addons: usize) -> AddonCatalogue {
    let versions = |name: &str| -> Value {
        let versions = (0..10).map(|patch| json!({"version": format!("1.0.{patch}"), "source": {"inline": {"manifest": ""}}}));
        json!({"name": name, "versions": versions.collect::<Vec<_>>()})
    };
    let mut all: Vec<Value> = (0..addons)
        .map(|i| versions(&format!("addon-{i}")))
        .collect();
    all.insert(addons / 2, versions("web"));
    catalogue("large", json!(all))
}

fn known(addons: usize) -> AdmissionFacts {
    let mut facts = facts(vec![source_of(addons)]);
    let mut core = core_installation("dns");
    core.spec.addon_ref.name = "addon-1".to_owned();
    facts.installations = vec![Arc::new(core.into())];
    facts
}

#[test]
fn ten_thousand_entries_cost_a_verdict_no_more_than_ten() {
    let (small, large) = (known(2), known(1_000));
    let who = requester(&[]);
    let of = |reference| installation("kubectl-addons", "web", reference, json!({}));
    let web = of(json!({"name": "web"}));
    let by_version = of(json!({"name": "web", "version": "1.0.3"}));
    let object = json!({"metadata": {"name": "web"}, "spec": {"addonRef": {"name": "web"}}});
    let other = catalogue(
        "other",
        json!([{"name": "mine", "versions": [
        {"version": "1.0.0", "source": {"inline": {"manifest": ""}}}]}]),
    );
    let mut less = other.clone();
    less.spec.addons.clear();
    let system = Some("kubectl-addons");
    type Judge<'a> = &'a dyn Fn(&AdmissionFacts);
    let judges: [(&str, usize, Judge<'_>); 7] = [
        ("an installation", 10, &|facts| {
            let verdict = validate::validate_installation(&web, None, &who, facts);
            assert!(verdict.problems.is_empty(), "{verdict:?}");
        }),
        ("one of a version", 10, &|facts| {
            let verdict = validate::validate_installation(&by_version, None, &who, facts);
            assert!(verdict.problems.is_empty(), "{verdict:?}");
        }),
        ("its defaults", 10, &|facts| {
            assert!(!mutate::defaults(&object, system, facts).patch.0.is_empty());
        }),
        ("a new catalogue", 0, &|facts| {
            let verdict = validate::validate_catalogue(&other, None, &who, facts);
            assert!(verdict.problems.is_empty(), "{verdict:?}");
        }),
        ("a changed one", 0, &|facts| {
            let verdict = validate::validate_catalogue(&less, Some(&other), &who, facts);
            assert!(verdict.problems.is_empty(), "{verdict:?}");
        }),
        ("a deleted one", 0, &|facts| {
            let verdict = validate::validate_catalogue_deletion(&other, &who, facts);
            assert!(verdict.problems.is_empty(), "{verdict:?}");
        }),
        ("what it lost", 0, &|facts| {
            assert!(lost_to_others(&other, facts).is_empty());
        }),
    ];
    for (what, most, judge) in judges {
        let (few, many) = (count(|| judge(&small)), count(|| judge(&large)));
        assert_eq!(few, many, "{what}");
        assert!(many <= most, "{what}: {many}");
    }
}
