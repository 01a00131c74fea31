//! Fields that other controllers own by contract, according to the field's documentation or validation. They are never sent, so they are
//! never taken back (semantics 12.6).
//!
//! Sources: the types and defaults of Kubernetes 1.36 (`staging/src/k8s.io/api/GROUP/VERSION/types.go`, cited by Go field), and the
//! documentation of the tools that inject a field.

use serde_json::Value;

use super::key::ObjectKey;

const ADMISSION: &str = "admissionregistration.k8s.io";

/// The condition under which a field of a manifest belongs to another manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContractCase {
    /// Always.
    Always,
    /// If the object has this field at its root.
    Beside(&'static str),
    /// If the value is only a placeholder: an empty text or list, 0, or a blank CA bundle.
    Blank,
    /// The same, or if an annotation asks a tool to inject the value ([`INJECTORS`]).
    Injected,
}

/// A field: group, kind, path (`*` stands for every item of a list), and condition.
type ContractField = (
    &'static str,
    &'static str,
    &'static [&'static str],
    ContractCase,
);

#[rustfmt::skip]
const TABLE: [ContractField; 12] = [
    // rbac/v1 ClusterRole.AggregationRule: "If AggregationRule is set, then the Rules are controller managed and direct changes to Rules
    // will be stomped by the controller."
    ("rbac.authorization.k8s.io", "ClusterRole", &["rules"], ContractCase::Beside("aggregationRule")),
    // admissionregistration/v1 WebhookClientConfig.CABundle, apiextensions/v1 WebhookClientConfig.CABundle and apiregistration/v1
    // APIServiceSpec.CABundle are optional. cert-manager's cainjector, OpenShift's service-ca and the operators themselves write them.
    (ADMISSION, "MutatingWebhookConfiguration", &["webhooks", "*", "clientConfig", "caBundle"], ContractCase::Injected),
    (ADMISSION, "ValidatingWebhookConfiguration", &["webhooks", "*", "clientConfig", "caBundle"], ContractCase::Injected),
    ("apiextensions.k8s.io", "CustomResourceDefinition", &["spec", "conversion", "webhook", "clientConfig", "caBundle"], ContractCase::Injected),
    ("apiregistration.k8s.io", "APIService", &["spec", "caBundle"], ContractCase::Injected),
    // core/v1 PersistentVolumeClaimSpec.VolumeName: "the binding reference to the PersistentVolume backing this claim", set once by the
    // volume controller. Empty means that it is not known yet.
    ("", "PersistentVolumeClaim", &["spec", "volumeName"], ContractCase::Blank),
    // core/v1 ServiceSpec.ClusterIP: "usually assigned randomly"; ClusterIPs, ServicePort.NodePort and HealthCheckNodePort: "a value will
    // be automatically allocated if not specified".
    ("", "Service", &["spec", "clusterIP"], ContractCase::Blank),
    ("", "Service", &["spec", "clusterIPs"], ContractCase::Blank),
    ("", "Service", &["spec", "ports", "*", "nodePort"], ContractCase::Blank),
    ("", "Service", &["spec", "healthCheckNodePort"], ContractCase::Blank),
    // pkg/controller/deployment/util RevisionAnnotation: the Deployment controller counts its ReplicaSets in it. Manifests that were
    // exported from a cluster carry it.
    ("apps", "Deployment", &["metadata", "annotations", "deployment.kubernetes.io/revision"], ContractCase::Always),
    // apps/v1 DeprecatedTemplateGeneration: counted by the server, which refuses another value.
    ("apps", "DaemonSet", &["metadata", "annotations", "deprecated.daemonset.template.generation"], ContractCase::Always),
];

/// Annotations that ask for the injection of a CA bundle.
const INJECTORS: [&str; 4] = [
    // cert-manager.io/docs/reference/annotations
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    // github.com/openshift/service-ca-operator
    "service.beta.openshift.io/inject-cabundle",
];

/// Removes the fields from a wanted object that others own by contract.
pub(super) fn remove_contract_fields(key: &ObjectKey, object: &mut Value) {
    let rows = TABLE
        .iter()
        .filter(|row| (row.0, row.1) == (key.group.as_str(), key.kind.as_str()));
    for (_, _, path, case) in rows {
        let is_theirs = match case {
            ContractCase::Always => true,
            ContractCase::Beside(other) => object.get(other).is_some_and(|other| !other.is_null()),
            ContractCase::Blank => false,
            ContractCase::Injected => is_injected(object),
        };
        let may_be_blank = matches!(case, ContractCase::Blank | ContractCase::Injected);
        remove_at_path(object, path, &|value| {
            is_theirs || may_be_blank && is_blank(value)
        });
    }
}

fn is_injected(object: &Value) -> bool {
    let annotations = object.pointer("/metadata/annotations");
    annotations.is_some_and(|all| INJECTORS.iter().any(|name| all.get(name).is_some()))
}

/// Removes the values at a path for which `is_theirs` is true. Recursion ends with the path.
fn remove_at_path(value: &mut Value, path: &[&str], is_theirs: &dyn Fn(&Value) -> bool) {
    match (path, value) {
        ([field], Value::Object(fields)) if fields.get(*field).is_some_and(is_theirs) => {
            fields.remove(*field);
        }
        ([_], Value::Object(_)) => {}
        (["*", rest @ ..], Value::Array(items)) => {
            for item in items {
                remove_at_path(item, rest, is_theirs);
            }
        }
        ([field, rest @ ..], Value::Object(fields)) => {
            if let Some(value) = fields.get_mut(*field) {
                remove_at_path(value, rest, is_theirs);
            }
        }
        _ => {}
    }
}

/// Returns whether a value is only a placeholder. `Cg==` is a line feed in base64, which kubebuilder writes into caBundle.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => matches!(text.trim(), "" | "Cg==" | "Cgo="),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Array(items) => items.iter().all(is_blank),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    #[rustfmt::skip]
    fn what_is_theirs_is_left_out() {
        let injected = json!({"annotations": {"cert-manager.io/inject-ca-from": "a/b"}});
        let hook = |config: Value| json!({"metadata": {}, "webhooks": [{"clientConfig": config}]});
        for (group, kind, object, wanted) in [
            ("rbac.authorization.k8s.io", "ClusterRole",
                json!({"aggregationRule": {"clusterRoleSelectors": []}, "rules": []}), json!({"aggregationRule": {"clusterRoleSelectors": []}})),
            ("rbac.authorization.k8s.io", "ClusterRole", json!({"rules": []}), json!({"rules": []})),
            (ADMISSION, "ValidatingWebhookConfiguration", hook(json!({"caBundle": "Cg=="})), hook(json!({}))),
            (ADMISSION, "ValidatingWebhookConfiguration", hook(json!({"caBundle": "Q0E="})), hook(json!({"caBundle": "Q0E="}))),
            ("apiregistration.k8s.io", "APIService", json!({"metadata": injected, "spec": {"caBundle": "Q0E="}}),
                json!({"metadata": injected, "spec": {}})),
            ("", "Service", json!({"spec": {"clusterIP": "", "clusterIPs": [""], "ports": [{"port": 80, "nodePort": 0}]}}),
                json!({"spec": {"ports": [{"port": 80}]}})),
            ("", "Service", json!({"spec": {"clusterIP": "None", "ports": [{"nodePort": 30080}]}}),
                json!({"spec": {"clusterIP": "None", "ports": [{"nodePort": 30080}]}})),
            ("", "PersistentVolumeClaim", json!({"spec": {"volumeName": "", "storageClassName": ""}}), json!({"spec": {"storageClassName": ""}})),
            ("apps", "Deployment", json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": "3", "a": "b"}}}),
                json!({"metadata": {"annotations": {"a": "b"}}})),
            ("example.com", "APIService", json!({"spec": {"caBundle": ""}}), json!({"spec": {"caBundle": ""}})),
        ] {
            let key = ObjectKey { group: group.to_owned(), kind: kind.to_owned(), ..ObjectKey::default() };
            let mut object = object;
            remove_contract_fields(&key, &mut object);
            assert_eq!(object, wanted, "{kind}");
        }
    }
}
