use std::sync::Arc;

use serde_json::{Value, json};

use super::super::desired::DesiredContext;
use super::*;
use crate::manifest::Manifest;
use crate::manifest::key::Gvk;
use crate::manifest::kinds::KindInfo;

const INDEX: &str = "https://kops.example.test/index.yaml";

fn record(namespace: &str, name: &str, more: &Value) -> AddonInstallation {
    let mut record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}")},
        "spec": {"addonRef": {"name": name, "index": INDEX}, "targetNamespace": "dns"},
    });
    json_patch::merge(&mut record, more);
    serde_json::from_value(record).unwrap()
}

fn name(text: &str) -> InstallationName {
    let (namespace, name) = text.split_once('/').unwrap();
    InstallationName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

#[test]
fn a_moved_record_means_the_same() {
    let more = json!({"metadata": {
        "labels": {"team": "net"}, "generation": 4, "resourceVersion": "7",
        "annotations": {"kubectl-addons.dev/defaulted": "{}", "argocd.argoproj.io/tracking-id": "a"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "u"}],
    }});
    let old = record("kube-system", "dns", &more);
    let new = moved(&old, "kubectl-addons", &[]).unwrap();
    let metadata = json!({
        "name": "dns", "namespace": "kubectl-addons", "labels": {"team": "net"},
        "annotations": {"kubectl-addons.dev/defaulted": "{}",
            "kubectl-addons.dev/moved-from": "kube-system/dns/uid-kube-system-dns"},
    });
    assert_eq!(serde_json::to_value(&new.metadata).unwrap(), metadata);
    assert_eq!(new.spec, old.spec);
    assert_eq!(OldPlace::named_by(&new), Some(OldPlace::of(&old)));
    assert_eq!(OldPlace::named_by(&old), None);
}

#[test]
fn what_means_something_else_elsewhere_stays() {
    let release = json!({"helmRelease": {"name": "r", "namespace": "n"}});
    let history = json!([{"verb": "install", "outcome": "failed", "installed": release}]);
    for (more, why) in [
        (json!({"spec": {"coreAddon": true}}), "it is a core add-on"),
        (json!({"spec": {"suspend": true}}), "it is suspended"),
        (
            json!({"metadata": {"finalizers": ["a/b"]}}),
            "finalizer a/b prevents its deletion",
        ),
        (
            json!({"spec": {"valuesFrom": [{"secretKeyRef": {"name": "a", "key": "b"}}]}}),
            "spec.valuesFrom reads Secrets of its namespace",
        ),
        (
            json!({"metadata": {"managedFields": [{"manager": "argocd-controller", "operation": "Update",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:addonRef": {}}}}]}}),
            "Argo CD applies it from Git: change its namespace there",
        ),
        (
            json!({"status": {"conditions": [], "history": history}}),
            "it is the Helm release n/r, which keeps its owner in records of its own",
        ),
    ] {
        let old = record("kube-system", "dns", &more);
        let refused = moved(&old, "kubectl-addons", &[]).unwrap_err();
        assert_eq!(refused.to_string(), why);
    }
}

#[test]
fn the_name_is_its_own_or_that_of_the_second_one() {
    let old = |more: Value| record("shop", "dns", &more);
    let same = record("sys", "dns", &json!({}));
    let other = record(
        "sys",
        "dns",
        &json!({"spec": {"targetNamespace": "kube-dns"}}),
    );
    let elsewhere = record("team", "dns", &json!({}));
    let second = second_name("dns", "dns");
    let taken = record("sys", &second, &json!({}));
    let rendered = json!({"spec": {"values": {"a": 1}}});
    for (old, others, expected) in [
        (old(json!({})), vec![elsewhere], Ok("dns".to_owned())),
        (old(json!({})), vec![other.clone()], Ok(second.clone())),
        (
            old(json!({})),
            vec![same],
            Err(Obstacle::Same(name("sys/dns"))),
        ),
        (
            old(rendered),
            vec![other.clone()],
            Err(Obstacle::Rendered(name("sys/dns"))),
        ),
        (
            old(json!({})),
            vec![other, taken],
            Err(Obstacle::Taken(
                name("sys/dns"),
                name(&format!("sys/{second}")),
            )),
        ),
    ] {
        let named = moved(&old, "sys", &others).map(|new| new.metadata.name.unwrap());
        assert_eq!(named, expected, "{others:?}");
    }
}

/// `(state, uid recorded, applied, uid live, label live)` and what becomes of it: goes along, stays recorded or is left.
#[test]
fn only_what_carries_the_label_goes_along() {
    use ObjectState::{Owned, Planned, Preexisting, Retained};
    let (old, other) = ("old".to_owned(), "other".to_owned());
    for (state, recorded, applied, live, label, expected) in [
        (Owned, "u", true, "u", Some(&old), Ok(true)),
        (Owned, "u", true, "u", Some(&other), Err(NotIts::Label)),
        (Owned, "u", true, "u", None, Err(NotIts::Label)),
        (Owned, "u", true, "v", Some(&old), Err(NotIts::Uid)),
        (Retained, "u", true, "u", Some(&old), Ok(true)),
        (Retained, "u", false, "u", None, Err(NotIts::Label)),
        (Preexisting, "u", true, "u", Some(&old), Ok(true)),
        (Preexisting, "u", true, "u", None, Err(NotIts::Label)),
        (Preexisting, "u", false, "u", None, Ok(false)),
        (Planned, "", false, "u", Some(&old), Ok(true)),
        (Planned, "", false, "u", Some(&other), Ok(false)),
    ] {
        let mut item = Item::planned("a", "v1");
        item.object.state = state;
        item.object.uid = recorded.to_owned();
        item.object.digest = if applied { "d" } else { "" }.to_owned();
        let live = LiveObject {
            uid: live.to_owned(),
            owner: label.cloned(),
            ..LiveObject::default()
        };
        let found = standing(&item, &live, std::slice::from_ref(&old));
        assert_eq!(found, expected, "{state:?} {label:?}");
    }
}

fn kinds() -> KindTable {
    let mut kinds = KindTable::default();
    for (version, kind, plural) in [
        ("v1", "ConfigMap", "configmaps"),
        ("batch/v1", "Job", "jobs"),
    ] {
        let info = KindInfo {
            plural: plural.to_owned(),
            namespaced: true,
            writable: true,
            singular: String::new(),
            has_status: false,
        };
        kinds.insert(&Gvk::new(version, kind), info);
    }
    kinds
}

fn key(group: &str, kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: Some("dns".to_owned()),
        name: name.to_owned(),
    }
}

#[test]
fn what_does_not_exist_is_not_claimed_but_a_job_has_run() {
    let keys = [key("", "ConfigMap", "a"), key("batch", "Job", "a")];
    let mut inventory = Inventory::default();
    for key in &keys {
        let mut item = Item::planned("a", "v1");
        item.object.state = ObjectState::Owned;
        item.object.uid = "u".to_owned();
        inventory.objects.insert(key.clone(), item);
    }
    let mut snapshot = Snapshot::default();
    let owners = ["old".to_owned()];
    let judged = judge(&inventory, &snapshot, &kinds(), &owners).unwrap();
    assert_eq!((&judged.follow, &judged.left), (&vec![], &vec![]));
    let states = keys
        .each_ref()
        .map(|key| judged.inventory.objects[key].object.state);
    assert_eq!(states, [ObjectState::Planned, ObjectState::Owned]);
    let why = "forbidden".to_owned();
    snapshot.unreadable.insert(keys[0].clone(), why.clone());
    let key = keys[0].clone();
    assert_eq!(
        judge(&inventory, &snapshot, &kinds(), &owners),
        Err(Obstacle::Unreadable { key, why })
    );
}

/// Otherwise every object of a moved installation would count as changed, and a Job that was deleted after its time would run again.
#[test]
fn digests_follow_the_new_marks() {
    let (old, new) = (name("kube-system/dns"), name("sys/dns"));
    let mask = Mask::default();
    let of = |owner: &InstallationName| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let manifest = Manifest {
            object: Arc::new(object),
            place: crate::manifest::Place::default(),
        };
        let context = DesiredContext {
            installation: owner,
            target_namespace: "dns",
            kinds: &kinds(),
            mask: &mask,
        };
        Desired::new(vec![manifest], &context).unwrap()
    };
    let key = key("", "ConfigMap", "a");
    let digest = |owner| of(owner).objects[&key].digest.clone();
    for (recorded, expected) in [
        (digest(&old), digest(&new)),
        (digest(&new), digest(&new)),
        ("another".to_owned(), "another".to_owned()),
        (String::new(), String::new()),
    ] {
        let mut inventory = Inventory::default();
        let mut item = Item::planned("a", "v1");
        item.object.digest = recorded;
        inventory.objects.insert(key.clone(), item);
        remark(&mut inventory, &of(&new), &old, &mask);
        assert_eq!(inventory.objects[&key].object.digest, expected);
    }
}

/// What was interrupted is continued by the next upgrade, and no lock goes along.
#[test]
fn the_status_goes_along_without_its_lock() {
    let time = "2026-01-01T12:00:00Z";
    let operation = json!({"id": "a", "verb": "upgrade", "holder": "h", "startedAt": time, "renewedAt": time, "leaseSeconds": 15});
    for (phase, expected) in [
        ("Ready", Phase::Ready),
        ("Progressing", Phase::Failed),
        ("Uninstalling", Phase::Failed),
    ] {
        let status = json!({"conditions": [], "phase": phase, "operation": operation, "observedGeneration": 3});
        let old = record("kube-system", "dns", &json!({"status": status}));
        let new = super::status(&old, &Inventory::default());
        assert_eq!((new.phase, new.operation), (Some(expected), None));
        assert_eq!(new.observed_generation, None);
    }
}
