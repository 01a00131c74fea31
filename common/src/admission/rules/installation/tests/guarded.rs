//! What is guarded of core installations beyond their deletion (semantics 8, 14).

use super::*;

#[test]
fn only_true_releases() {
    let facts = facts(vec![]);
    for (value, denied) in [("true", false), ("false", true), ("", true)] {
        let old = marks(true, json!({"annotations": {ANNOTATION_RELEASED: value}}));
        assert_eq!(deletion(&old, &facts).is_some(), denied, "{value:?}");
    }
}

#[test]
fn what_becomes_core_is_not_released_yet() {
    let (plain, free) = (marks(false, json!({})), marks(false, released()));
    let core = marks(true, released());
    for (new, old, denied) in [
        (&core, None, true),
        (&core, Some(&plain), true),
        (&core, Some(&free), true),
        (&core, Some(&core), false),
        (&marks(true, json!({})), Some(&free), false),
        (&free, None, false),
    ] {
        assert_eq!(released_before(new, old).is_some(), denied);
    }
}

#[test]
fn only_the_core_group_changes_the_spec_of_core() {
    let facts = facts(vec![]);
    let of = |is_core: bool, more: Value| {
        let mut spec = json!({"coreAddon": is_core});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        installation(
            SYSTEM_NAMESPACE,
            "coredns",
            json!({"name": "coredns"}),
            spec,
        )
    };
    let changes = [
        json!({"suspend": true}),
        json!({"values": {"replicas": 0}}),
        json!({"targetNamespace": "elsewhere"}),
        json!({"deletionPolicy": "Orphan"}),
    ];
    for change in changes {
        for (is_core, who, denied) in [
            (true, requester(&["system:masters"]), true),
            (true, core(), false),
            (false, requester(&[]), false),
        ] {
            let (old, new) = (of(is_core, json!({})), of(is_core, change.clone()));
            let problem = core_spec(&new, &old, &who, &facts);
            assert_eq!(problem.is_some(), denied, "{change}");
        }
    }
    let mut labelled = of(true, json!({}));
    labelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    let unchanged = core_spec(&labelled, &of(true, json!({})), &requester(&[]), &facts);
    assert_eq!(unchanged, None);
}
