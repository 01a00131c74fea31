//! The add-ons: each has a Deployment with what usually comes with one, and ConfigMaps for the rest.

use common::api::names::API_VERSION;
use serde_json::{Value, json};

/// How many there are.
pub(crate) const ADDONS: usize = 40;
/// How many objects they have together.
pub(crate) const OBJECTS: usize = 1700;
/// The text in a ConfigMap, in bytes.
const TEXT: usize = 1024;

/// Name of an add-on, and of its Deployment.
pub(crate) fn name(index: usize) -> String {
    format!("addon-{index:02}")
}

/// The manifest of an add-on in a namespace, as a directory of the addon-manager has it.
pub(crate) fn manifest(index: usize, namespace: &str) -> String {
    let name = name(index);
    let mut objects = workload(&name);
    let all = OBJECTS / ADDONS + usize::from(index % ADDONS < OBJECTS % ADDONS);
    for number in objects.len()..all {
        let mut map = object("v1", "ConfigMap", &format!("{name}-{number:02}"));
        map["data"] = json!({"text": "x".repeat(TEXT)});
        objects.push(map);
    }
    let mut text = String::new();
    for mut object in objects {
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["labels"] = json!({"addonmanager.kubernetes.io/mode": "Reconcile"});
        text += &format!("{object}\n---\n");
    }
    text
}

/// The record of an add-on from an index, whose edits are repaired.
pub(crate) fn record(index: usize, namespace: &str, location: &str) -> Value {
    let name = name(index);
    let mut record = object(API_VERSION, "AddonInstallation", &name);
    record["spec"] = json!({
        "addonRef": {"name": name, "index": location},
        "targetNamespace": namespace,
        "reconcile": "Ensure",
    });
    record
}

fn workload(name: &str) -> Vec<Value> {
    let labels = json!({"app": name});
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
    let with = |version: &str, kind: &str, fields: Value| {
        let mut object = object(version, kind, name);
        if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
            object.extend(fields);
        }
        object
    };
    let pods = json!({
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "example.test/main:1"}]},
        },
    });
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        with("v1", "ServiceAccount", json!({})),
        with(rbac, "Role", json!({"rules": rules})),
        with(
            rbac,
            "RoleBinding",
            json!({"roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": name}]}),
        ),
        with("v1", "Secret", json!({"stringData": {"key": "value"}})),
        with(
            "v1",
            "Service",
            json!({"spec": {"selector": labels, "ports": [{"port": 80}]}}),
        ),
        with("apps/v1", "Deployment", json!({"spec": pods})),
        with(
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}),
        ),
        with(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {"matchLabels": labels}, "ingress": [{}]}}),
        ),
    ]
}

fn object(version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}})
}
