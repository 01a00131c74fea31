//! Immutable fields of built-in kinds, from the validation of Kubernetes 1.36 (`pkg/apis/*/validation`). The table is used for objects that
//! the server cannot check in a dry run, because a webhook does not answer.
//!
//! The table only has fields that the server stores as they were sent. Templates of Jobs and Pods are missing: the server rewrites defaults
//! and quantities in them, so unchanged templates would be refused.

use serde_json::Value;

use super::FixedField;
use common::manifest::key::ObjectKey;

const IMMUTABLE: &str = "field is immutable";

/// The group and kind of an object, and its immutable fields.
type ImmutableFields = (&'static str, &'static str, &'static [&'static str]);

#[rustfmt::skip]
const TABLE: [ImmutableFields; 23] = [
    ("apps", "Deployment", &["spec.selector"]),
    ("apps", "ReplicaSet", &["spec.selector"]),
    ("apps", "DaemonSet", &["spec.selector"]),
    ("apps", "StatefulSet", &["spec.selector", "spec.serviceName", "spec.podManagementPolicy", "spec.volumeClaimTemplates"]),
    ("apps", "ControllerRevision", &["data"]),
    ("batch", "Job", &["spec.selector", "spec.completionMode", "spec.managedBy", "spec.backoffLimitPerIndex"]),
    ("", "PersistentVolumeClaim", &["spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeMode",
        "spec.volumeName", "spec.dataSource", "spec.dataSourceRef"]),
    ("", "PersistentVolume", &["spec.volumeMode", "spec.csi.driver", "spec.csi.volumeHandle", "spec.hostPath", "spec.local",
        "spec.nfs"]),
    ("", "Secret", &["type"]),
    ("", "Service", &["spec.clusterIP"]),
    ("rbac.authorization.k8s.io", "RoleBinding", &["roleRef"]),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", &["roleRef"]),
    ("storage.k8s.io", "StorageClass", &["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"]),
    ("storage.k8s.io", "CSIDriver", &["spec.attachRequired", "spec.volumeLifecycleModes"]),
    ("storage.k8s.io", "VolumeAttachment", &["spec"]),
    ("storage.k8s.io", "VolumeAttributesClass", &["driverName", "parameters"]),
    ("networking.k8s.io", "IngressClass", &["spec.controller"]),
    ("networking.k8s.io", "IPAddress", &["spec.parentRef"]),
    ("scheduling.k8s.io", "PriorityClass", &["value", "preemptionPolicy"]),
    ("node.k8s.io", "RuntimeClass", &["handler"]),
    ("discovery.k8s.io", "EndpointSlice", &["addressType"]),
    ("certificates.k8s.io", "ClusterTrustBundle", &["spec.signerName"]),
    ("coordination.k8s.io", "LeaseCandidate", &["spec.leaseName"]),
];

/// Returns the immutable fields that would change; `None` if the kind is not in the table. A field that only the manifest has counts as
/// changed; one that only the live object has stays as it is.
#[must_use]
pub fn find_changed_fields(
    key: &ObjectKey,
    live: &Value,
    wanted: &Value,
) -> Option<Vec<FixedField>> {
    let is_sealable = key.group.is_empty() && matches!(key.kind.as_str(), "ConfigMap" | "Secret");
    let row = TABLE
        .iter()
        .find(|row| (row.0, row.1) == (key.group.as_str(), key.kind.as_str()));
    if row.is_none() && !is_sealable {
        return None;
    }
    let fields = row.map(|row| row.2).unwrap_or_default().iter();
    let mut found: Vec<FixedField> = fields
        .filter(|field| differs(live, wanted, field))
        .filter(|field| !may_be_set(key, field, live, wanted))
        .map(|field| FixedField {
            field: (*field).to_owned(),
            rule: IMMUTABLE.to_owned(),
        })
        .collect();
    if is_sealable && live.get("immutable") == Some(&Value::Bool(true)) {
        let sealed = ["data", "binaryData"];
        let opened = wanted.get("immutable") != Some(&Value::Bool(true));
        let opened = opened.then_some("immutable");
        let sealed = sealed
            .into_iter()
            .filter(|field| differs(live, wanted, field));
        found.extend(opened.into_iter().chain(sealed).map(|field| FixedField {
            field: field.to_owned(),
            rule: "field is immutable when `immutable` is set".to_owned(),
        }));
    }
    Some(found)
}

/// Whether the manifest sets a field to another value than the live one.
fn differs(live: &Value, wanted: &Value, field: &str) -> bool {
    let pointer = format!("/{}", field.replace('.', "/"));
    match (live.pointer(&pointer), wanted.pointer(&pointer)) {
        (_, None | Some(Value::Null)) => false,
        (None, Some(wanted)) => !is_empty(wanted),
        (Some(live), Some(wanted)) => !values_match(live, wanted, field),
    }
}

/// Whether two values are the same. Selectors are compared exactly; in everything else, the server may have added defaults.
fn values_match(live: &Value, wanted: &Value, field: &str) -> bool {
    if field == "spec.selector" {
        return live == wanted;
    }
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            live.get(name)
                .is_some_and(|live| values_match(live, wanted, name))
        }),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len()
                && live
                    .iter()
                    .zip(wanted)
                    .all(|(live, wanted)| values_match(live, wanted, ""))
        }
        // `1Gi` and `1024Mi` are the same size.
        (Value::String(_), Value::String(_) | Value::Number(_)) if field == "storage" => true,
        (live, wanted) => live == wanted,
    }
}

/// Whether an immutable field may still be set: a claim gets its volume once, and a Service gets its address from the server.
fn may_be_set(key: &ObjectKey, field: &str, live: &Value, wanted: &Value) -> bool {
    let text = |object: &Value, pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    match (key.kind.as_str(), field) {
        ("PersistentVolumeClaim", "spec.volumeName") => text(live, "/spec/volumeName").is_empty(),
        ("PersistentVolumeClaim", "spec.storageClassName") => {
            live.pointer("/spec/storageClassName").is_none()
        }
        ("Service", "spec.clusterIP") => {
            let address = |object| text(object, "/spec/clusterIP");
            let is_external = |object| text(object, "/spec/type") == "ExternalName";
            address(live).is_empty()
                || address(wanted).is_empty()
                || is_external(live)
                || is_external(wanted)
        }
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use common::manifest::kinds::traits::is_built_in;

    fn found(group: &str, kind: &str, live: &Value, wanted: &Value) -> Vec<String> {
        let key = ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..ObjectKey::default()
        };
        let fields = find_changed_fields(&key, live, wanted).unwrap();
        fields.into_iter().map(|one| one.field).collect()
    }

    #[test]
    fn every_row_is_of_a_built_in_kind_and_stands_once() {
        for (index, row) in TABLE.iter().enumerate() {
            assert!(is_built_in(row.0), "{}/{}", row.0, row.1);
            let mut before = TABLE.iter().take(index);
            assert!(
                !before.any(|it| (it.0, it.1) == (row.0, row.1)),
                "{}",
                row.1
            );
        }
        let custom = ObjectKey {
            group: "example.com".to_owned(),
            kind: "Deployment".to_owned(),
            ..ObjectKey::default()
        };
        assert_eq!(find_changed_fields(&custom, &json!({}), &json!({})), None);
    }

    const RBAC: &str = "rbac.authorization.k8s.io";
    const STORAGE: &str = "storage.k8s.io";

    /// Group, kind, live, wanted, and the fields.
    type Case<'a> = (&'a str, &'a str, Value, Value, &'a [&'a str]);

    fn expect(cases: &[Case<'_>]) {
        for (group, kind, live, wanted, expected) in cases {
            assert_eq!(
                found(group, kind, live, wanted),
                *expected,
                "{kind} {wanted}"
            );
        }
    }

    #[test]
    #[rustfmt::skip]
    fn fields_of_workloads() {
        let labels = |labels: Value| json!({"spec": {"selector": {"matchLabels": labels}}});
        let (one, two) = (json!({"app": "web"}), json!({"app": "web", "tier": "front"}));
        let claim = |name: &str, spec: Value| json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": name}, "spec": spec}]}});
        let size = |size: &str| json!({"resources": {"requests": {"storage": size}}});
        let defaulted = json!({"volumeMode": "Filesystem", "resources": {"requests": {"storage": "1Gi"}}});
        expect(&[
            ("apps", "Deployment", labels(one.clone()), labels(one.clone()), &[]),
            ("apps", "Deployment", labels(one.clone()), labels(two.clone()), &["spec.selector"]),
            ("apps", "DaemonSet", labels(two), labels(one), &["spec.selector"]),
            // The server adds defaults to templates of claims.
            ("apps", "StatefulSet", claim("data", defaulted.clone()), claim("data", size("1024Mi")), &[]),
            ("apps", "StatefulSet", claim("data", defaulted), claim("other", size("1Gi")), &["spec.volumeClaimTemplates"]),
        ]);
    }

    #[test]
    #[rustfmt::skip]
    fn fields_of_the_rest() {
        let role = |name: &str| json!({"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name}});
        let map = |value: &str| json!({"data": {"a": value}});
        let sealed = |value: &str| json!({"immutable": true, "data": {"a": value}});
        let address = |address: &str| json!({"spec": {"clusterIP": address}});
        let bare = json!({"spec": {"accessModes": ["ReadWriteOnce"]}});
        let bound = json!({"spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "v", "storageClassName": "fast"}});
        expect(&[
            (RBAC, "RoleBinding", role("a"), role("b"), &["roleRef"]),
            // What the manifest leaves out stays.
            (STORAGE, "StorageClass", json!({"provisioner": "a", "reclaimPolicy": "Delete"}), json!({"provisioner": "a"}), &[]),
            (STORAGE, "StorageClass", json!({"provisioner": "a"}), json!({"provisioner": "b", "parameters": {"type": "ssd"}}),
                &["provisioner", "parameters"]),
            ("", "ConfigMap", map("1"), map("2"), &[]),
            ("", "ConfigMap", sealed("1"), sealed("2"), &["data"]),
            ("", "ConfigMap", sealed("1"), map("1"), &["immutable"]),
            ("", "Secret", json!({"type": "Opaque"}), json!({"type": "kubernetes.io/tls"}), &["type"]),
            ("", "Service", address("10.0.0.1"), address("None"), &["spec.clusterIP"]),
            ("", "Service", address("10.0.0.1"), json!({"spec": {"type": "ExternalName", "clusterIP": ""}}), &[]),
            ("", "PersistentVolumeClaim", bare, bound, &[]),
        ]);
    }
}
