//! Events of the watches become facts, and only complete ones.

use common::api::installation::AddonInstallationSpec;
use common::api::names::{
    ANNOTATION_CLUSTER_DELETING, ANNOTATION_KKP_VERSION, LABEL_CLUSTER, SYSTEM_NAMESPACE,
};
use common::api::policy::{Installers, PolicyAction};
use serde_json::{Value, json};

use super::*;
use crate::follow;

fn stored(namespace: &str, name: &str, spec: Value) -> StoredObject {
    serde_json::from_value(json!({
        "metadata": {"namespace": namespace, "name": name, "managedFields": [{"manager": "m"}]},
        "spec": spec,
        "status": {"inventory": "of any shape, never read"},
    }))
    .unwrap()
}

fn namespace(metadata: Value) -> PartialObjectMeta<Namespace> {
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

/// The kept facts, by namespace and name.
fn reduced<K: kube::Resource, T>(
    objects: Vec<K>,
    reduce: fn(K) -> Option<T>,
) -> BTreeMap<NamespacedKey, T> {
    let kept = objects.into_iter().filter_map(|object| {
        let key = follow::key(&object);
        Some((key, reduce(object)?))
    });
    kept.collect()
}

fn list(installations: Vec<StoredObject>) -> CacheChange {
    CacheChange::Installation(FollowedEvent::Listed(reduced(
        installations,
        reduce::reduce_installation,
    )))
}

/// A cache in which everything was listed, with these installations.
fn listed(installations: Vec<StoredObject>) -> Mirror {
    let mut mirror = Mirror::default();
    for change in [
        list(installations),
        CacheChange::Catalogue(FollowedEvent::Listed(BTreeMap::new())),
        CacheChange::Namespace(FollowedEvent::Listed(BTreeMap::new())),
        CacheChange::Policy(FollowedEvent::Listed(BTreeMap::new())),
        CacheChange::Version(semver::Version::new(1, 36, 3)),
    ] {
        assert!(
            mirror.facts(&AdmissionSettings::default()).is_none(),
            "complete too early"
        );
        assert!(mirror.apply(change));
    }
    mirror
}

fn names(mirror: &Mirror) -> Vec<String> {
    let facts = mirror.facts(&AdmissionSettings::default()).unwrap();
    facts
        .installations
        .iter()
        .map(|one| one.name.clone())
        .collect()
}

#[test]
fn facts_are_published_when_everything_was_listed_and_follow_changes() {
    let web = || stored("n", "web", json!({"addonRef": {"name": "web"}}));
    let mut mirror = listed(vec![web()]);
    let dns = || stored("n", "dns", json!({"addonRef": {"name": "dns"}}));
    let changed = |object: StoredObject, copy| {
        CacheChange::Installation(FollowedEvent::Changed(follow::key(&object), copy))
    };
    assert!(mirror.apply(changed(dns(), reduce::reduce_installation(dns()))));
    assert_eq!(names(&mirror), ["dns", "web"]);
    assert!(mirror.apply(changed(web(), None)));
    assert_eq!(names(&mirror), ["dns"]);
    // Neither event publishes new facts.
    assert!(!mirror.apply(changed(web(), None)));
    assert!(!mirror.apply(CacheChange::Installation(FollowedEvent::Bookmark)));
    // A new list replaces the old copies.
    assert!(mirror.apply(list(vec![web()])));
    assert_eq!(names(&mirror), ["web"]);
}

#[test]
fn what_cannot_be_read_keeps_its_guards_and_stops_nothing() {
    let mirror = listed(vec![
        stored(
            "n",
            "core",
            json!({"addonRef": {"name": "dns"}, "coreAddon": true, "reconcile": "Sometimes"}),
        ),
        stored("n", "odd", json!(7)),
    ]);
    let facts = mirror.facts(&AdmissionSettings::default()).unwrap();
    let found: Vec<(bool, &str)> = facts
        .installations
        .iter()
        .map(|one| (one.is_core, one.addon.name.as_str()))
        .collect();
    assert_eq!(found, [(true, "dns"), (false, "")]);
}

/// An object may nest to any depth, and contain the key that serde_json reserves.
#[test]
fn what_nests_too_deep_stops_no_list() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(1000), "}".repeat(1000));
    let keyed = r#"{"$serde_json::private::RawValue":"x {"}"#;
    let item = |name: &str, values: &str| {
        format!(
            r#"{{"metadata":{{"namespace":"n","name":"{name}","uid":"u","resourceVersion":"7",
                "managedFields":[{{"manager":"m","fieldsV1":{deep}}}]}},
                "spec":{{"addonRef":{{"name":"web"}},"coreAddon":true,"values":{values}}},"status":{deep}}}"#
        )
    };
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"List","metadata":{{}},"items":[{},{},{}]}}"#,
        item("a", &deep),
        item("b", keyed),
        item("c", "{}")
    );
    let list: kube::core::ObjectList<StoredObject> = serde_json::from_str(&text).unwrap();
    let read = list
        .items
        .into_iter()
        .filter_map(reduce::reduce_installation);
    let read: Vec<_> = read.collect();
    assert_eq!(read.len(), 3);
    for record in &read {
        assert!(record.is_core);
        assert_eq!(record.addon.name, "web");
    }
    let event = format!(r#"{{"type":"MODIFIED","object":{}}}"#, item("a", &deep));
    let event: kube::api::WatchEvent<StoredObject> = serde_json::from_str(&event).unwrap();
    assert!(matches!(event, kube::api::WatchEvent::Modified(_)));
}

#[test]
fn the_entry_and_the_target_namespace_of_what_cannot_be_read_stay_guarded() {
    let mut dns = json!({
        "addonRef": {"name": "dns", "version": "1.0.0", "id": "a", "catalogue": "base"},
        "targetNamespace": "dns-system", "coreAddon": true,
    });
    let readable: AddonInstallationSpec = serde_json::from_value(dns.clone()).unwrap();
    dns["reconcile"] = json!("Sometimes");
    let mut of_index = dns.clone();
    of_index["addonRef"] = json!({"name": "dns", "index": "https://a.example.test"});
    let mirror = listed(vec![stored("n", "a", dns), stored("n", "b", of_index)]);
    let facts = mirror.facts(&AdmissionSettings::default()).unwrap();
    let [dns, of_index] = &facts.installations[..] else {
        panic!("{:?}", facts.installations);
    };
    assert_eq!(dns.addon, readable.addon_ref);
    let target = readable.target_namespace.unwrap();
    assert!(dns.namespaces.contains(&target));
    // This installation uses no entry of a catalogue.
    let index = of_index.addon.index.as_deref();
    assert_eq!(index, Some("https://a.example.test"));
}

#[test]
fn of_the_status_of_core_the_namespaces_of_its_objects_are_kept() {
    let of = |is_core: bool| -> StoredObject {
        let inventory = json!([
            {"version": "v1", "kind": "ConfigMap", "namespace": "a", "objects": [{"name": "x"}]},
            {"version": "v1", "kind": "Namespace", "objects": [{"name": "b"}]},
        ]);
        serde_json::from_value(json!({
            "metadata": {"name": "dns"}, "spec": {"addonRef": {"name": "dns"}, "coreAddon": is_core},
            "status": {"phase": "Ready", "inventory": inventory},
        }))
        .unwrap()
    };
    let kept = reduce::reduce_installation(of(true)).unwrap();
    let found: Vec<&str> = kept.namespaces.iter().map(String::as_str).collect();
    assert_eq!(found, ["a", "b"]);
    let kept = reduce::reduce_installation(of(false)).unwrap();
    assert!(kept.namespaces.is_empty());
}

/// Values, and fields that no rule reads, are not kept.
#[test]
fn of_what_is_not_core_only_references_to_catalogues_are_kept() {
    let of = |reference: Value| {
        let values = json!({"a": "x".repeat(1 << 20)});
        let spec = json!({"addonRef": reference, "values": values});
        reduce::reduce_installation(stored("n", "web", spec))
    };
    let kept = of(json!({"name": "web", "version": "1"})).unwrap();
    let expected = InstallationFacts {
        namespace: "n".to_owned(),
        name: "web".to_owned(),
        addon: serde_json::from_value(json!({"name": "web", "version": "1"})).unwrap(),
        ..InstallationFacts::default()
    };
    assert_eq!(*kept, expected);
    assert!(of(json!({"name": "web", "index": "https://a.example.test"})).is_none());
    assert!(of(json!({"name": "web", "directory": "/a"})).is_none());
}

#[test]
fn a_catalogue_that_lists_too_much_is_not_read() {
    let of = |count: usize| {
        let versions = vec![json!({"version": "1", "source": {}}); count];
        let spec = json!({"addons": [{"name": "web", "versions": versions}]});
        reduce::reduce_catalogue(stored(SYSTEM_NAMESPACE, "large", spec))
    };
    assert!(of(10_000).is_some());
    assert!(of(10_001).is_none());
}

#[test]
fn of_namespaces_only_marks_are_kept() {
    let mut mirror = listed(vec![]);
    let changed = |metadata| {
        let namespace = namespace(metadata);
        let key = follow::key(&namespace);
        CacheChange::Namespace(FollowedEvent::Changed(
            key,
            reduce::reduce_namespace(namespace, SYSTEM_NAMESPACE),
        ))
    };
    for metadata in [
        json!({"name": "plain", "labels": {"a": "b"}}),
        json!({"name": "local", "labels": {LABEL_CLUSTER: "local"}}),
        json!({"name": "other", "labels": {LABEL_CLUSTER: "remote"}}),
        json!({"name": "deleting", "annotations": {ANNOTATION_CLUSTER_DELETING: "true"}}),
        json!({"name": "staying", "annotations": {ANNOTATION_CLUSTER_DELETING: "false"}}),
        json!({"name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z"}),
        json!({
            "name": SYSTEM_NAMESPACE, "labels": {"team": "platform"},
            "annotations": {ANNOTATION_KKP_VERSION: "v2.28.3"},
        }),
    ] {
        mirror.apply(changed(metadata));
    }
    let facts = mirror.facts(&AdmissionSettings::default()).unwrap();
    assert_eq!(facts.cluster.kkp, Some(semver::Version::new(2, 28, 3)));
    let kept: Vec<&str> = facts.namespaces.keys().map(String::as_str).collect();
    assert_eq!(kept, ["deleting", "going", SYSTEM_NAMESPACE, "local"]);
    // Policies select namespaces by these labels.
    let label = |name: &str| facts.namespaces[name].labels.get("team").cloned();
    assert_eq!(label(SYSTEM_NAMESPACE).as_deref(), Some("platform"));
    assert!(
        facts.is_local("local") && facts.is_local("kubectl-addons") && !facts.is_local("other")
    );
    mirror.apply(changed(json!({"name": "local"})));
    let facts = mirror.facts(&AdmissionSettings::default()).unwrap();
    assert!(!facts.is_local("local"));
}

#[test]
fn a_policy_that_cannot_be_read_lets_no_one_install() {
    let read = |spec: Value| {
        reduce::reduce_policy(stored("", "p", spec))
            .unwrap()
            .spec
            .clone()
    };
    let spec = read(json!({"action": "Warn", "allowed": {"catalogues": ["a"]}}));
    assert_eq!((spec.action, spec.installers), (PolicyAction::Warn, None));
    let spec = read(json!({"action": "Perhaps"}));
    let closed = Some(Installers::default());
    assert_eq!(
        (spec.action, spec.installers),
        (PolicyAction::Enforce, closed)
    );
}
