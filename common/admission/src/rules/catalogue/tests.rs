//! One table for each rule.

use serde_json::{Value, json};

use super::*;
use crate::fixtures::{
    addon, catalogue, catalogue_object, core, core_catalogue, facts, requester, rules_of, source,
    texts,
};
use crate::validate;
use common::api::names::CORE_GROUP;

/// A catalogue of one version of add-on `a` with these fields.
fn one(fields: Value) -> AddonCatalogue {
    let mut version = json!({"version": "1.0.0", "source": source()});
    for (key, value) in fields.as_object().unwrap() {
        version[key] = value.clone();
    }
    catalogue("c", json!([{"name": "a", "versions": [version]}]))
}

#[test]
fn constraints_are_read_each_in_its_language() {
    let at = "spec.addons[0].versions[0]";
    for (fields, places) in [
        (
            json!({"constraints": {"k8sVersion": ">=1.30.0 <1.37.0"}}),
            vec![],
        ),
        (
            json!({"constraints": {"k8sVersion": "~1.30 || ^2"}}),
            vec![],
        ),
        (
            json!({"constraints": {"kubernetesVersion": ">=1.16.0-alpha.0 <1.20.0"}}),
            vec![],
        ),
        (
            json!({"constraints": {"k8sVersion": "", "kkpVersion": null, "kubernetesVersion": " "}}),
            vec![],
        ),
        (
            json!({"constraints": {"k8sVersion": ">=1.30 <"}}),
            vec!["constraints.k8sVersion"],
        ),
        (
            json!({"constraints": {"kkpVersion": ">="}}),
            vec!["constraints.kkpVersion"],
        ),
        (
            json!({"constraints": {"kubernetesVersion": ">"}}),
            vec!["constraints.kubernetesVersion"],
        ),
        (
            json!({"requires": [{"name": "b"}, {"name": "c", "version": ">"}]}),
            vec!["requires[1].version"],
        ),
        (
            json!({"constraints": {"k8sVersion": "=", "kkpVersion": "<"}}),
            vec!["constraints.k8sVersion", "constraints.kkpVersion"],
        ),
    ] {
        let problems = unreadable_constraints(&one(fields.clone()));
        let fields_of: Vec<&str> = problems
            .iter()
            .map(|problem| problem.field.as_str())
            .collect();
        let expected: Vec<String> = places.iter().map(|place| format!("{at}.{place}")).collect();
        assert_eq!(fields_of, expected, "{fields}: {problems:?}");
    }
}

#[test]
fn an_add_on_is_not_its_own_successor() {
    let deprecated = |successor: &str| json!({"reason": "it ended", "successor": successor});
    for (of_addon, of_version, places) in [
        ("b", "c", vec![]),
        ("a", "b", vec!["spec.addons[0].deprecated.successor"]),
        (
            "b",
            "a",
            vec!["spec.addons[0].versions[0].deprecated.successor"],
        ),
    ] {
        let mut catalogue = one(json!({"deprecated": deprecated(of_version)}));
        let addon = &mut catalogue.spec.addons[0];
        addon.name = "a".to_owned();
        addon.deprecated = serde_json::from_value(deprecated(of_addon)).unwrap();
        let problems = own_successors(&catalogue);
        let found: Vec<&str> = problems.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(found, places);
    }
}

#[test]
fn the_words_of_the_transcript() {
    let problems = unreadable_constraints(&one(json!({"constraints": {"k8sVersion": ">=1.30 <"}})));
    assert_eq!(
        texts(&problems),
        [
            r#"spec.addons[0].versions[0].constraints.k8sVersion: ">=1.30 <" ends in an operator: a version must follow <"#
        ]
    );
}

#[test]
fn versions_can_be_read() {
    for (fields, wrong) in [
        (json!({"version": "v1.2.3-rc.1"}), false),
        (json!({"version": "1"}), false),
        (json!({"version": "latest"}), true),
        (json!({"version": "1.8.2.20161223"}), true),
        (json!({"version": "", "id": "k8s-1.6"}), false),
        (json!({"version": "", "manifestHash": "00"}), false),
        (json!({"version": ""}), true),
    ] {
        let problems = unreadable_versions(&one(fields.clone()));
        assert_eq!(!problems.is_empty(), wrong, "{fields}: {problems:?}");
    }
}

#[test]
fn every_version_has_one_source() {
    for (source, expected) in [
        (json!({"url": {"manifest": "m.yaml"}}), None),
        (json!({"inline": {"manifest": ""}}), None),
        (json!({}), Some("not none")),
        (
            json!({"url": {"manifest": "m"}, "inline": {"manifest": ""}}),
            Some("not url and inline"),
        ),
    ] {
        let problems = texts(&one_source(&one(json!({ "source": source }))));
        match expected {
            None => assert_eq!(problems, [""; 0]),
            Some(end) => assert!(problems[0].ends_with(end), "{problems:?}"),
        }
    }
}

#[test]
fn support_core_only_in_class_core() {
    let addons = json!([{"name": "a", "support": "Core", "versions": []}, addon("b", &["1"])]);
    assert_eq!(
        texts(&support_core(&catalogue("c", addons.clone()))),
        [
            "spec.addons[0].support: a is Core in a catalogue of class Custom; use Optional or Customer"
        ]
    );
    assert_eq!(support_core(&core_catalogue("c", addons)), []);
}

#[test]
fn a_core_name_is_in_no_custom_catalogue() {
    let custom = catalogue(
        "custom",
        json!([addon("b", &["1"]), addon("coredns", &["9"])]),
    );
    let core = core_catalogue("core", json!([addon("coredns", &["1"])]));
    assert_eq!(
        texts(&core_names(&custom, &facts(vec![core.clone()]))),
        [
            "spec.addons[1].name: coredns is held by catalogue core of class Core; choose another name"
        ]
    );
    let mut elsewhere = custom.clone();
    elsewhere.metadata.namespace = Some("team".into());
    assert_eq!(core_names(&elsewhere, &facts(vec![core.clone()])).len(), 1);
    // The catalogue of class Core takes the name from others, with a warning.
    let both = facts(vec![custom]);
    assert_eq!(core_names(&core, &both), []);
    assert_eq!(
        warn_taken_names(&core, &both),
        [
            "spec.addons[0].name: coredns is in catalogue custom of class Custom, which does not offer it any more"
        ]
    );
    // Two Core catalogues may share a name, and an object is not compared with its old self.
    let other = core_catalogue("other", json!([addon("coredns", &["2"])]));
    let was_custom = catalogue("core", json!([addon("coredns", &["1"])]));
    for before in [other, was_custom] {
        let facts = facts(vec![before]);
        assert_eq!(core_names(&core, &facts), []);
        assert_eq!(warn_taken_names(&core, &facts), Vec::<String>::new());
    }
}

#[test]
fn class_core_is_written_by_the_core_group_only() {
    let facts = facts(vec![]);
    let custom = catalogue("c", json!([]));
    let core_class = core_catalogue("c", json!([]));
    let jane = requester(&["system:masters"]);
    for (new, old, denied) in [
        (Some(&custom), None, false),
        (Some(&core_class), None, true),
        (Some(&core_class), Some(&custom), true),
        (Some(&custom), Some(&core_class), true),
        (None, Some(&core_class), true),
        (None, Some(&custom), false),
    ] {
        assert_eq!(class_core(new, old, &jane, &facts).is_some(), denied);
        assert_eq!(class_core(new, old, &core(), &facts), None);
    }
}

#[test]
fn only_distributors_write_the_mark_of_copies() {
    let facts = facts(vec![]);
    let plain = catalogue("c", json!([]));
    let marked = |from: &str| {
        let mut copy = plain.clone();
        copy.metadata.labels = Some([(LABEL_DERIVED_FROM.to_owned(), from.to_owned())].into());
        copy
    };
    let jane = requester(&[]);
    for (new, old, denied) in [
        (&plain, None, false),
        (&marked("a"), None, true),
        (&marked("a"), Some(&plain), true),
        (&plain, Some(&marked("a")), true),
        (&marked("b"), Some(&marked("a")), true),
        (&marked("a"), Some(&marked("a")), false),
    ] {
        assert_eq!(derived_mark(new, old, &jane, &facts).is_some(), denied);
        assert_eq!(derived_mark(new, old, &core(), &facts).is_some(), denied);
        let distributor = requester(&[DISTRIBUTOR_GROUP]);
        assert_eq!(derived_mark(new, old, &distributor, &facts), None);
    }
}

#[test]
fn a_distributor_writes_nothing_of_class_core() {
    let facts = facts(vec![]);
    let mut source = catalogue("c", json!([]));
    source.spec.class = CatalogueClass::Core;
    let mut copy = source.clone();
    copy.metadata.labels = Some([(LABEL_DERIVED_FROM.to_owned(), "a".to_owned())].into());
    for (new, old) in [
        (Some(&copy), None),
        (Some(&copy), Some(&copy)),
        (None, Some(&copy)),
        (Some(&source), None),
    ] {
        for groups in [&[DISTRIBUTOR_GROUP][..], &[]] {
            assert!(class_core(new, old, &requester(groups), &facts).is_some());
        }
        assert_eq!(class_core(new, old, &core(), &facts), None);
    }
}

#[test]
fn a_distributor_makes_no_copy_of_a_core_source_and_no_source_of_a_core_copy() {
    let facts = facts(vec![]);
    let copy_of = |source: &AddonCatalogue, from: &str| {
        let mut copy = source.clone();
        copy.metadata.labels = Some([(LABEL_DERIVED_FROM.to_owned(), from.to_owned())].into());
        copy
    };
    for (source, denied) in [
        (core_catalogue("c", json!([])), &["class-core"][..]),
        (catalogue("c", json!([])), &[]),
    ] {
        let (copy, other) = (copy_of(&source, "a"), copy_of(&source, "b"));
        for (new, old, expected) in [
            (&copy, &source, denied),
            (&source, &copy, denied),
            (&other, &copy, denied),
        ] {
            let distributor = requester(&[DISTRIBUTOR_GROUP]);
            let verdict = validate::validate_catalogue(new, Some(old), &distributor, &facts);
            assert_eq!(rules_of(&verdict), expected);
            let both = requester(&[DISTRIBUTOR_GROUP, CORE_GROUP]);
            let verdict = validate::validate_catalogue(new, Some(old), &both, &facts);
            assert!(verdict.problems.is_empty(), "{verdict:?}");
        }
    }
}

#[test]
fn kops_pruning_without_a_selector_is_a_warning() {
    let prune = |selector: Value| {
        one(json!({"prune": {"kinds": [{"kind": "ConfigMap", "labelSelector": selector}]}}))
    };
    assert_eq!(prune_without_selector(&prune(json!("a=b"))), [""; 0]);
    for selector in [json!(null), json!(""), json!(" ")] {
        assert_eq!(
            prune_without_selector(&prune(selector)),
            [
                "spec.addons[0].versions[0].prune.kinds[0]: kops would delete every ConfigMap that a does not contain; set labelSelector"
            ]
        );
    }
}

#[test]
fn a_catalogue_elsewhere_is_no_source() {
    let settings = AdmissionSettings::default();
    let elsewhere = catalogue_object(json!({
        "metadata": {"name": "c", "namespace": "team"}, "spec": {},
    }));
    assert!(outside_system_namespace(&elsewhere, &settings).is_some());
    assert_eq!(
        outside_system_namespace(&catalogue("c", json!([])), &settings),
        None
    );
}

#[test]
fn a_hash_can_be_verified() {
    let md5 = "098f6bcd4621d373cade4e832627b4f6";
    for (hash, expected) in [
        (json!(null), None),
        (json!(""), None),
        (json!("a".repeat(64)), None),
        (json!("A".repeat(40)), None),
        (json!("latest"), Some("neither a sha256")),
        (json!("g".repeat(64)), Some("neither a sha256")),
        (json!(md5), Some("is an md5, which is not verified")),
    ] {
        let problems = unverifiable_hashes(&one(json!({"manifestHash": hash})));
        let problem = problems.first();
        assert_eq!(
            problem.is_some(),
            expected.is_some(),
            "{hash}: {problems:?}"
        );
        if let (Some(problem), Some(expected)) = (problem, expected) {
            assert_eq!(problem.field, "spec.addons[0].versions[0].manifestHash");
            assert!(problem.message.contains(expected), "{problem}");
        }
    }
}

#[test]
fn of_two_made_at_once_the_younger_has_lost_its_duplicates() {
    let made = |name: &str, second: u8, addons: Value| {
        let mut object = catalogue(name, addons);
        let time = json!(format!("2026-01-01T00:00:0{second}Z"));
        object.metadata.creation_timestamp = serde_json::from_value(time).unwrap();
        object
    };
    let web = || json!([addon("only", &["1"]), addon("web", &["v1", "2"])]);
    let (older, same_age, younger) = (
        made("b", 1, web()),
        made("c", 1, web()),
        made("a", 2, web()),
    );
    let mut copy = younger.clone();
    copy.metadata.labels = Some([(LABEL_DERIVED_FROM.to_owned(), "b".to_owned())].into());
    let core = core_catalogue("core", json!([addon("web", &["2", "9"])]));
    for (loser, others, lost) in [
        (&older, vec![same_age.clone(), younger.clone()], &[][..]),
        (
            &same_age,
            vec![older.clone()],
            &[
                "spec.addons[0].versions[0]",
                "spec.addons[1].versions[0]",
                "spec.addons[1].versions[1]",
            ],
        ),
        (
            &younger,
            vec![made("d", 1, json!([addon("web", &["2.0.0"])]))],
            &["spec.addons[1].versions[1]"],
        ),
        (&copy, vec![older.clone()], &[]),
        // A name of class Core stays with that class, even if another catalogue is older.
        (&older, vec![core.clone()], &["spec.addons[1].name"]),
        (&core, vec![older.clone()], &[]),
    ] {
        let mut facts = facts(others);
        facts
            .catalogues
            .push(std::sync::Arc::new(loser.clone().into()));
        let found = lost_to_others(loser, &facts);
        let fields: Vec<_> = found.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, lost, "{:?}", loser.metadata);
    }
}
