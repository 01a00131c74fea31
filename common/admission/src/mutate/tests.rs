//! Whole objects that are patched, patched again, or left unchanged.

use serde_json::json;

use super::*;
use crate::fixtures::{catalogue, facts, installation_json, source};

/// One add-on by helm with values and a form, and one plain manifest.
fn with_values() -> AdmissionFacts {
    facts(vec![catalogue(
        "platform",
        json!([
            {"name": "web", "versions": [
                {"version": "1.0.0", "source": source(), "defaultNamespace": "shop",
                 "template": {"method": "helm", "formSpec": [
                    {"internalName": "spec.replicas", "type": "number", "default": 2},
                    {"internalName": "image.tag", "default": "from-the-form"},
                    {"internalName": "host", "required": true}]},
                 "values": {"image": {"registry": "r.example", "tag": "from-the-catalogue"}}},
                {"version": "2.0.0", "source": source(),
                 "template": {"method": "helm"},
                 "values": {"image": {"registry": "new.example"}}}]},
            {"name": "plain", "versions": [{"version": "1", "source": source()}]},
            {"name": "dotted.name", "versions": [{"version": "1", "source": source()}]},
        ]),
    )])
}

fn patched(object: &Value, facts: &AdmissionFacts) -> (Value, Patch) {
    let patch = defaults(object, None, facts).patch;
    let mut new = object.clone();
    json_patch::patch(&mut new, &patch).unwrap();
    (new, patch)
}

#[test]
fn everything_missing_is_filled_once() {
    let facts = with_values();
    let mut object = installation_json(
        "kubectl-addons",
        "web",
        json!({"name": "web", "version": "1.0.0"}),
        json!({"values": {"host": "shop.example"}, "unknownField": {"kept": true}}),
    );
    object["spec"]["suspend"] = json!(true);
    let (new, patch) = patched(&object, &facts);
    assert_eq!(
        new["spec"],
        json!({
            "addonRef": {"name": "web", "version": "1.0.0"},
            "coreAddon": false,
            "createNamespace": true,
            "targetNamespace": "shop",
            "suspend": true,
            "unknownField": {"kept": true},
            "values": {
                "host": "shop.example",
                "spec": {"replicas": 2},
                "image": {"registry": "r.example", "tag": "from-the-form"},
            },
        })
    );
    let record =
        DefaultsRecord::parse(new["metadata"]["annotations"][ANNOTATION_DEFAULTED].as_str());
    let text = record.to_annotation().unwrap();
    for pointer in ["/spec/replicas", "/image/registry", "/image/tag"] {
        assert!(text.contains(pointer), "{text}");
    }
    assert!(!text.contains("host"), "{text}");
    assert!(
        patch
            .0
            .iter()
            .all(|operation| matches!(operation, PatchOperation::Add(_))),
        "{patch}"
    );
    assert_eq!(defaults(&new, None, &facts).patch, Patch::default());
}

#[test]
fn a_new_version_takes_its_own_defaults_and_leaves_the_users() {
    let facts = with_values();
    let object = installation_json(
        "kubectl-addons",
        "web",
        json!({"name": "web", "version": "1.0.0"}),
        json!({}),
    );
    let (mut first, _) = patched(&object, &facts);
    first["spec"]["addonRef"]["version"] = json!("2.0.0");
    first["spec"]["values"]["spec"]["replicas"] = json!(5);
    let (second, patch) = patched(&first, &facts);
    assert_eq!(
        second["spec"]["values"],
        json!({"spec": {"replicas": 5}, "image": {"registry": "new.example"}})
    );
    // The namespace is set only once: that of another version does not change it.
    assert_eq!(second["spec"]["targetNamespace"], "shop");
    assert_eq!(patch.0.len(), 3, "{patch}");
    assert_eq!(defaults(&second, None, &facts).patch, Patch::default());
}

#[test]
fn values_that_nothing_is_filled_into_are_not_read() {
    let facts = with_values();
    let reference = json!({"name": "web", "version": "2.0.0"});
    let mut object = installation_json("kubectl-addons", "web", reference, json!({}));
    object["spec"]["values"] = json!({"image": {"tag": "mine"}, "deep": "@"});
    // Deeper than serde_json reads.
    let deep = "[".repeat(200) + &"]".repeat(200);
    let text = object.to_string().replace("\"@\"", &deep);
    let patch = WrittenInstallation::read(&text)
        .unwrap()
        .defaults(None, &facts)
        .patch;
    let paths: Vec<String> = patch.0.iter().map(|one| one.path().to_string()).collect();
    let values: Vec<&String> = paths
        .iter()
        .filter(|path| path.contains("values"))
        .collect();
    assert_eq!(values, ["/spec/values/image/registry"], "{patch}");
}

#[test]
fn what_is_no_object_gets_no_patch() {
    let facts = with_values();
    for (field, value) in [
        ("metadata", json!(null)),
        ("metadata", json!([])),
        ("spec", json!("text")),
    ] {
        let mut object =
            installation_json("kubectl-addons", "web", json!({"name": "web"}), json!({}));
        object[field] = value;
        assert_eq!(
            defaults(&object, None, &facts).patch,
            Patch::default(),
            "{object}"
        );
    }
}

#[test]
fn target_namespaces() {
    let facts = with_values();
    // addonRef, given target namespace, result
    for (reference, given, expected) in [
        (
            json!({"name": "web", "version": "1.0.0"}),
            json!(null),
            json!("shop"),
        ),
        (json!({"name": "web"}), json!(null), json!("web")),
        (json!({"name": "web"}), json!("mine"), json!("mine")),
        (json!({"name": "plain"}), json!(null), json!("plain")),
        (json!({"name": "dotted.name"}), json!(null), json!(null)),
        (json!({"name": "unknown"}), json!(null), json!(null)),
        (
            json!({"name": "web", "index": "https://x"}),
            json!(null),
            json!(null),
        ),
        (
            json!({"name": "web", "catalogue": "none"}),
            json!(null),
            json!(null),
        ),
    ] {
        let object = installation_json(
            "kubectl-addons",
            "a",
            reference.clone(),
            json!({"targetNamespace": given}),
        );
        let (new, _) = patched(&object, &facts);
        assert_eq!(new["spec"]["targetNamespace"], expected, "{reference}");
    }
}

#[test]
fn nothing_of_an_entry_is_filled_in_where_another_cluster_decides_which() {
    let facts = with_values();
    for (version, expected) in [(json!(null), json!(null)), (json!("1.0.0"), json!("shop"))] {
        let reference = json!({"name": "web", "version": version});
        let object = installation_json("remote", "web", reference, json!({}));
        let (new, _) = patched(&object, &facts);
        assert_eq!(new["spec"]["targetNamespace"], expected, "{new}");
        assert_eq!(new["spec"].get("values").is_some(), expected != json!(null));
        assert_eq!(new["spec"]["createNamespace"], true, "{new}");
    }
}

#[test]
fn plain_manifests_get_no_values_and_lose_what_was_filled_in() {
    let facts = with_values();
    let object = installation_json(
        "kubectl-addons",
        "plain",
        json!({"name": "plain"}),
        json!({}),
    );
    let (new, _) = patched(&object, &facts);
    assert_eq!(new["spec"].get("values"), None);
    assert_eq!(new["metadata"].get("annotations"), None);
}

#[test]
fn the_writer_is_recorded_where_the_change_is_judged() {
    let facts = with_values();
    let before = json!({ANNOTATION_WRITTEN_BY: "anna\nops"});
    let of = |annotations: &Value, spec: Value| {
        let mut object =
            json!({"metadata": {"name": "web", "namespace": "kubectl-addons"}, "spec": spec});
        object["spec"]["addonRef"] = json!({"name": "any", "index": "https://x"});
        if !annotations.is_null() {
            object["metadata"]["annotations"] = annotations.clone();
        }
        object
    };
    let (none, jane) = (json!(null), "jane\ndevs");
    let old = of(&before, json!({}));
    for (new, old, expected) in [
        (of(&none, json!({})), &none, Some(jane)),
        (of(&before, json!({})), &none, Some(jane)),
        (of(&before, json!({"registry": "r"})), &old, Some(jane)),
        (of(&none, json!({})), &old, Some(jane)),
        (of(&json!({"a": "b"}), json!({})), &old, Some(jane)),
        (
            of(&before, json!({"suspend": true})),
            &old,
            Some("anna\nops"),
        ),
        (of(&before, json!({})), &old, Some("anna\nops")),
        (of(&none, json!({"coreAddon": true})), &none, None),
    ] {
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        let review = json!({"request": {
            "uid": "u", "operation": operation,
            "kind": {"group": GROUP, "version": "v1alpha1", "kind": "AddonInstallation"},
            "resource": {"group": GROUP, "version": "v1alpha1", "resource": "x"},
            "userInfo": {"username": "jane", "groups": ["devs"]},
            "object": new, "oldObject": old,
        }});
        let bytes = serde_json::to_vec(&review).unwrap();
        let patch = mutate(&ReviewRequest::from_slice(&bytes).unwrap(), &facts).patch;
        let mut patched = new.clone();
        json_patch::patch(&mut patched, &patch).unwrap();
        let found = patched["metadata"]["annotations"][ANNOTATION_WRITTEN_BY].as_str();
        assert_eq!(found, expected, "{new} {old}");
        let others = patched["metadata"]["annotations"]["a"].as_str();
        assert_eq!(others, new["metadata"]["annotations"]["a"].as_str());
    }
}

#[test]
fn only_installations_that_are_made_or_changed_are_patched() {
    let facts = with_values();
    let object = |metadata: Value, spec: Value| json!({"metadata": metadata, "spec": spec});
    let spec = json!({"addonRef": {"name": "web"}});
    let plain = object(
        json!({"name": "web", "namespace": "kubectl-addons"}),
        spec.clone(),
    );
    let labelled = object(
        json!({"name": "web", "namespace": "kubectl-addons", "labels": {"a": "b"}}),
        spec.clone(),
    );
    let going = object(
        json!({"name": "web", "namespace": "kubectl-addons", "deletionTimestamp": "2026-01-01T00:00:00Z"}),
        spec,
    );
    let changed = object(
        json!({"name": "web", "namespace": "kubectl-addons"}),
        json!({"addonRef": {"name": "web", "version": "1"}}),
    );
    for (kind, sub, operation, new, old, wanted) in [
        (
            "AddonInstallation",
            "",
            "CREATE",
            &plain,
            &json!(null),
            true,
        ),
        ("AddonInstallation", "", "UPDATE", &changed, &plain, true),
        ("AddonInstallation", "", "UPDATE", &labelled, &plain, false),
        ("AddonInstallation", "", "UPDATE", &going, &changed, false),
        (
            "AddonInstallation",
            "status",
            "UPDATE",
            &changed,
            &plain,
            false,
        ),
        (
            "AddonInstallation",
            "",
            "DELETE",
            &json!(null),
            &plain,
            false,
        ),
        ("AddonCatalogue", "", "CREATE", &plain, &json!(null), false),
        (
            "AddonInstallation",
            "",
            "CREATE",
            &json!(null),
            &json!(null),
            false,
        ),
        (
            "AddonInstallation",
            "",
            "CREATE",
            &json!([1]),
            &json!(null),
            false,
        ),
        (
            "AddonInstallation",
            "",
            "CREATE",
            &json!({"spec": 7}),
            &json!(null),
            false,
        ),
    ] {
        let review = json!({"request": {
            "uid": "u", "operation": operation, "subResource": sub,
            "kind": {"group": GROUP, "version": "v1alpha1", "kind": kind},
            "resource": {"group": GROUP, "version": "v1alpha1", "resource": "x"},
            "object": new, "oldObject": old,
        }});
        let bytes = serde_json::to_vec(&review).unwrap();
        let patch = mutate(&ReviewRequest::from_slice(&bytes).unwrap(), &facts).patch;
        assert_eq!(
            !patch.0.is_empty(),
            wanted,
            "{operation} {new} {old}: {patch}"
        );
    }
}
