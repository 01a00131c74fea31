use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::snapshot::Controller;
use common::api::installation::InventoryObject;
use common::manifest::key::Gvk;
use common::manifest::kinds::KindInfo;

fn till() -> InstallationName {
    InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "till".to_owned(),
    }
}

fn key(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    }
}

fn map(name: &str) -> ObjectKey {
    key("", "ConfigMap", Some("shop"), name)
}

fn kinds() -> KindTable {
    let mut kinds = KindTable::default();
    for (api_version, kind) in [("v1", "ConfigMap"), ("v1", "Namespace")] {
        let info = KindInfo {
            plural: format!("{}s", kind.to_lowercase()),
            singular: kind.to_lowercase(),
            namespaced: kind != "Namespace",
            writable: true,
            has_status: false,
        };
        kinds.insert(&Gvk::new(api_version, kind), info);
    }
    kinds
}

/// Applied in generation 1.
fn item(name: &str, state: ObjectState, uid: &str) -> InventoryItem {
    InventoryItem {
        version: "v1".to_owned(),
        object: InventoryObject {
            name: name.to_owned(),
            state,
            uid: uid.to_owned(),
            digest: "d1".to_owned(),
            generation: Some(1),
            ..InventoryObject::default()
        },
    }
}

/// Ours, in this generation.
fn live(uid: &str, generation: i64) -> LiveObject {
    LiveObject {
        owner: Some(owner_hash("kubectl-addons", "till")),
        last_written: Some("2026-01-02T10:00:00Z".parse().unwrap()),
        uid: uid.to_owned(),
        generation: Some(generation),
        ..LiveObject::default()
    }
}

/// The plan for what is recorded, what is live of that, and what else carries the label.
fn plan_of(
    recorded: Vec<(ObjectKey, InventoryItem)>,
    found: Vec<(ObjectKey, LiveObject)>,
    claims: &Claims,
) -> InstallationPlan {
    let inventory = Inventory {
        objects: recorded.into_iter().collect(),
    };
    let (live, unasked) = found
        .into_iter()
        .partition(|(key, _)| inventory.objects.contains_key(key));
    let snapshot = Snapshot {
        live,
        unrequested: unasked,
        ..Snapshot::default()
    };
    rebuild(&RebuildInput {
        installation: &till(),
        addon: "till",
        from: None,
        inventory: &inventory,
        snapshot: &snapshot,
        kinds: &kinds(),
        claims,
        target_namespace: Some("shop"),
        is_other_cluster: false,
    })
    .unwrap()
}

#[test]
fn what_is_recorded_becomes_what_is_there() {
    use ObjectState::{Owned, Planned, Preexisting, Retained};
    let without_label = |uid: &str| LiveObject {
        owner: None,
        ..live(uid, 1)
    };
    let theirs = LiveObject {
        owner: Some("0123456789abcdef".to_owned()),
        ..live("u2", 1)
    };
    for (what, state, found, expected) in [
        ("unchanged", Owned, Some(live("u1", 1)), Some((Owned, "d1"))),
        ("changed", Owned, Some(live("u1", 2)), Some((Owned, ""))),
        (
            "another one of ours",
            Owned,
            Some(live("u2", 1)),
            Some((Owned, "")),
        ),
        ("gone", Owned, None, None),
        ("of someone else", Owned, Some(without_label("u2")), None),
        ("of another installation", Owned, Some(theirs), None),
        (
            "without its label",
            Owned,
            Some(without_label("u1")),
            Some((Owned, "d1")),
        ),
        (
            "there before us",
            Preexisting,
            Some(live("u1", 2)),
            Some((Preexisting, "")),
        ),
        (
            "kept",
            Retained,
            Some(live("u1", 1)),
            Some((Retained, "d1")),
        ),
        (
            "created meanwhile",
            Planned,
            Some(live("u1", 1)),
            Some((Owned, "d1")),
        ),
    ] {
        let found = found.map(|live| (map("a"), live));
        let recorded = vec![(map("a"), item("a", state, "u1"))];
        let plan = plan_of(recorded, found.into_iter().collect(), &Claims::default());
        let after = plan.exact.objects.get(&map("a")).map(|item| &item.object);
        let seen = after.map(|object| (object.state, object.digest.as_str()));
        assert_eq!(seen, expected, "{what}");
        let rebuilt = plan.rebuilt.as_ref().unwrap();
        assert_eq!(rebuilt.forgotten.is_empty(), expected.is_some(), "{what}");
        // Recorded until the operation has ended.
        assert!(plan.union.objects.contains_key(&map("a")), "{what}");
        assert!(plan.steps.is_empty() && plan.closing.is_empty(), "{what}");
    }
}

#[test]
fn what_carries_the_label_and_our_fields_is_recorded() {
    let controlled = LiveObject {
        controlled_by: Some(Controller::default()),
        ..live("u1", 1)
    };
    let copied = LiveObject {
        last_written: None,
        ..live("u1", 1)
    };
    let created_once = LiveObject {
        create_only: true,
        ..live("u1", 1)
    };
    let mut claims = Claims::default();
    claims.objects.insert(map("claimed"), till());
    let found = vec![
        (map("ours"), live("u1", 3)),
        (map("once"), created_once),
        (map("controlled"), controlled),
        (map("copied"), copied.clone()),
        (map("claimed"), live("u1", 1)),
        // Of a kind that is not served.
        (key("shop.test", "Till", None, "a"), live("u1", 1)),
        // Created for the installation, and no object of it.
        (key("", "Namespace", None, "shop"), copied),
    ];
    let plan = plan_of(Vec::new(), found, &claims);
    let rebuilt = plan.rebuilt.as_ref().unwrap();
    let added: BTreeSet<&str> = rebuilt.added.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(added, BTreeSet::from(["once", "ours"]));
    let ours = json!(plan.exact.objects[&map("ours")].object);
    assert_eq!(ours, json!({"name": "ours", "uid": "u1", "generation": 3}));
    let once = &plan.exact.objects[&map("once")].object;
    assert_eq!(once.state, ObjectState::Retained);
    let namespace = rebuilt.namespace.as_ref().unwrap();
    assert_eq!(
        (namespace.name.as_str(), namespace.uid.as_str()),
        ("shop", "u1")
    );
    assert!(plan.to.as_ref().unwrap().adopted);
}

#[test]
fn a_job_that_ended_is_not_forgotten() {
    let job = key("batch", "Job", Some("shop"), "once");
    let recorded = vec![(job.clone(), item("once", ObjectState::Owned, "u1"))];
    let plan = plan_of(recorded, Vec::new(), &Claims::default());
    assert!(plan.exact.objects.contains_key(&job));
}
