//! One table for each guard.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::NamespaceFacts;
use crate::fixtures::{core, core_installation, facts, installation, marks, requester};
use common::api::names::SYSTEM_NAMESPACE;

/// Facts in which the system namespace has these marks.
fn namespace(terminating: bool, cluster_deleting: bool) -> AdmissionFacts {
    let mut facts = facts(vec![]);
    let marks = NamespaceFacts {
        cluster_deleting,
        terminating,
        ..NamespaceFacts::default()
    };
    facts.namespaces.insert(SYSTEM_NAMESPACE.to_owned(), marks);
    facts
}

fn released() -> Value {
    json!({"annotations": {ANNOTATION_RELEASED: "true"}})
}

fn guarded() -> Value {
    json!({"finalizers": ["other", FINALIZER_CORE_GUARD]})
}

#[test]
fn core_is_not_deleted_unless_released_or_with_its_namespace_or_cluster() {
    for (old, facts, denied) in [
        (marks(true, json!({})), facts(vec![]), true),
        (marks(false, json!({})), facts(vec![]), false),
        (marks(true, released()), facts(vec![]), false),
        (marks(true, json!({})), namespace(true, false), false),
        (marks(true, json!({})), namespace(false, true), false),
        (marks(true, json!({})), namespace(false, false), true),
    ] {
        assert_eq!(
            deletion(&old, &facts).is_some(),
            denied,
            "{old:?} {facts:?}"
        );
    }
    assert_eq!(
        deletion(&marks(true, json!({})), &facts(vec![]))
            .unwrap()
            .to_string(),
        "coredns is a core add-on of this cluster (coreAddon in namespace kubectl-addons); \
         a member of the core group releases it first: \
         kubectl addons core release coredns -n kubectl-addons"
    );
}

#[test]
fn the_core_flag_is_set_by_core_only_and_never_taken_back() {
    let facts = facts(vec![]);
    let (yes, no) = (marks(true, json!({})), marks(false, json!({})));
    let jane = requester(&["system:masters"]);
    for (new, old, who, denied) in [
        (&yes, None, &jane, true),
        (&yes, None, &core(), false),
        (&no, None, &jane, false),
        (&yes, Some(&no), &jane, true),
        (&yes, Some(&no), &core(), false),
        (&yes, Some(&yes), &jane, false),
        (&no, Some(&yes), &jane, true),
        (&no, Some(&yes), &core(), true),
    ] {
        assert_eq!(
            core_flag(new, old, who, &facts).is_some(),
            denied,
            "{new:?} {old:?}"
        );
    }
    let mut with_loop = facts;
    with_loop.settings.core_users = vec!["jane".to_owned()];
    assert_eq!(core_flag(&yes, None, &jane, &with_loop), None);
}

#[test]
fn the_guard_finalizer_stays_until_released() {
    let with = |metadata: Value| {
        let mut all = guarded();
        all["annotations"] = metadata["annotations"].clone();
        marks(true, all)
    };
    let held = with(json!({}));
    let free = with(released());
    let gone = marks(true, json!({}));
    let foreign = |is_core| {
        marks(
            is_core,
            json!({"finalizers": ["other", "example.test/hold"]}),
        )
    };
    let user = {
        let mut user = held.clone();
        user.core = false;
        user
    };
    for (new, old, facts, who, denied) in [
        (&gone, &held, facts(vec![]), requester(&[]), true),
        (&held, &held, facts(vec![]), requester(&[]), false),
        (&gone, &gone, facts(vec![]), requester(&[]), false),
        (&gone, &user, facts(vec![]), requester(&[]), false),
        (&gone, &held, facts(vec![]), core(), false),
        (&gone, &free, facts(vec![]), requester(&[]), false),
        // A mark that is set together with the removal does not count.
        (
            &marks(true, released()),
            &held,
            facts(vec![]),
            requester(&[]),
            true,
        ),
        (&gone, &held, namespace(true, false), requester(&[]), true),
        (&gone, &held, namespace(false, true), requester(&[]), false),
        // No one else sets it, on a core add-on or any other: it must not block the deletion of an add-on that is not core.
        (&held, &gone, facts(vec![]), requester(&[]), true),
        (&held, &gone, facts(vec![]), core(), false),
        (&user, &gone, facts(vec![]), requester(&[]), true),
        (&user, &user, facts(vec![]), requester(&[]), false),
        // Any other finalizer would block a core add-on after its release; its owner may remove it.
        (&foreign(true), &gone, facts(vec![]), requester(&[]), true),
        (&foreign(true), &gone, facts(vec![]), core(), false),
        (&gone, &foreign(true), facts(vec![]), requester(&[]), false),
        (&foreign(false), &user, facts(vec![]), requester(&[]), false),
    ] {
        assert_eq!(
            guard_finalizer(new, Some(old), &who, &facts).is_some(),
            denied,
            "{new:?} {old:?}"
        );
    }
}

#[test]
fn only_core_releases_core() {
    let facts = facts(vec![]);
    let plain = marks(true, json!({}));
    let free = marks(true, released());
    let jane = requester(&[]);
    for (new, old, who, denied) in [
        (&free, Some(&plain), &jane, true),
        (&free, None, &jane, true),
        (&free, Some(&plain), &core(), false),
        (&free, Some(&free), &jane, false),
        (&plain, Some(&free), &jane, true),
        (&plain, Some(&free), &core(), false),
        (&marks(false, released()), None, &jane, true),
        (&marks(false, json!({})), Some(&free), &jane, false),
    ] {
        assert_eq!(release_mark(new, old, who, &facts).is_some(), denied);
    }
}

#[test]
fn core_gets_no_owner() {
    let facts = facts(vec![]);
    let owned = |core, uid: &str| {
        marks(
            core,
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": uid}]}),
        )
    };
    let plain = marks(true, json!({}));
    let jane = requester(&[]);
    for (new, old, who, denied) in [
        (&owned(true, "1"), Some(&plain), &jane, true),
        (&owned(true, "1"), None, &jane, true),
        (&owned(true, "1"), Some(&plain), &core(), false),
        (&owned(true, "1"), Some(&owned(true, "1")), &jane, false),
        (&owned(true, "2"), Some(&owned(true, "1")), &jane, true),
        (&plain, Some(&owned(true, "1")), &jane, false),
        (&owned(false, "1"), Some(&plain), &jane, false),
    ] {
        assert_eq!(owner_references(new, old, who, &facts).is_some(), denied);
    }
}

#[test]
fn only_true_releases() {
    let facts = facts(vec![]);
    for (value, denied) in [("true", false), ("false", true), ("", true)] {
        let old = marks(true, json!({"annotations": {ANNOTATION_RELEASED: value}}));
        assert_eq!(deletion(&old, &facts).is_some(), denied, "{value:?}");
    }
}

#[test]
fn what_becomes_core_carries_nothing_that_would_remove_it() {
    let owned = json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}]});
    let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let (plain, core) = (marks(false, json!({})), marks(true, json!({})));
    for (metadata, is_meant_on_create) in [(released(), false), (owned, true), (going, false)] {
        let (new, before) = (marks(true, metadata.clone()), marks(false, metadata));
        for (new, old, is_denied) in [
            (&new, None, !is_meant_on_create),
            (&new, Some(&plain), true),
            (&new, Some(&before), true),
            (&new, Some(&new), false),
            (&core, Some(&before), false),
            (&before, None, false),
        ] {
            let problems = check_becoming_core(new, old);
            assert_eq!(problems.len(), usize::from(is_denied), "{new:?} {old:?}");
        }
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
}

#[test]
fn only_the_core_group_changes_labels_and_annotations_of_core() {
    let facts = facts(vec![]);
    let plain = |is_core| marks(is_core, json!({"annotations": {"a": "b"}}));
    for (metadata, changed) in [
        (json!({"annotations": {"a": "b"}}), vec![]),
        (
            json!({"annotations": {"a": "b", ANNOTATION_RELEASED: "true"}}),
            vec![],
        ),
        (
            json!({"annotations": {"a": "c"}}),
            vec!["metadata.annotations"],
        ),
        (json!({}), vec!["metadata.annotations"]),
        (
            json!({"annotations": {"a": "b"}, "labels": {"team": "a"}}),
            vec!["metadata.labels"],
        ),
    ] {
        for (is_core, who, is_denied) in [
            (true, requester(&["system:masters"]), true),
            (true, core(), false),
            (false, requester(&[]), false),
        ] {
            let new = marks(is_core, metadata.clone());
            let found = core_metadata(&new, Some(&plain(is_core)), &who, &facts);
            let found: Vec<String> = found.into_iter().map(|it| it.field).collect();
            let expected = if is_denied { changed.clone() } else { vec![] };
            assert_eq!(found, expected, "{metadata}");
        }
    }
}

#[test]
fn names_of_core_sets_are_reserved_everywhere() {
    let mut facts = facts(vec![]);
    let named = |namespace: &str, finalizers: Value| {
        let mut record = core_installation("dns");
        record.metadata.namespace = Some(namespace.to_owned());
        record.metadata.finalizers = serde_json::from_value(finalizers).unwrap();
        record
    };
    let of_set = named("shop", json!([FINALIZER_CORE_GUARD]));
    let by_hand = named("other", json!([]));
    let marks_of = |namespace: &str, is_core: bool| {
        let mut record = named(namespace, json!([]));
        record.spec.core_addon = is_core;
        GuardMarks::from_installation(&record)
    };
    for (holder, new, who, denied) in [
        (&of_set, marks_of("team", false), requester(&[]), true),
        (&of_set, marks_of("team", false), core(), false),
        // Another rule decides whether it may be core.
        (&of_set, marks_of("team", true), requester(&[]), false),
        (&of_set, marks_of("shop", false), requester(&[]), false),
        (&by_hand, marks_of("team", false), requester(&[]), false),
    ] {
        facts.installations = vec![Arc::new(holder.into())];
        let problem = reserved_name(&new, &who, &facts);
        assert_eq!(problem.is_some(), denied, "{new:?}");
    }
}
