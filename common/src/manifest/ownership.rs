//! Marks of ownership, the namespace, and fields that only the server writes.

use serde_json::{Map, Value};

use crate::api::names::{
    ANNOTATION_APPLY, ANNOTATION_INSTALLATION, APPLY_CREATE_ONLY, InstallationName, LABEL_OWNER,
    owner_hash,
};

/// What an object of an installation carries: owner label and installation annotation (semantics 5).
#[derive(Clone, Debug)]
pub struct Marks {
    owner: String,
    installation: String,
}

impl Marks {
    /// Those of an installation.
    #[must_use]
    pub fn of(installation: &InstallationName) -> Self {
        Self {
            owner: owner_hash(&installation.namespace, &installation.name),
            installation: installation.to_string(),
        }
    }

    /// Marks an object as one of the installation.
    pub fn put_on(&self, object: &mut Value) {
        let Some(metadata) = metadata_mut(object) else {
            return;
        };
        set(metadata, "labels", LABEL_OWNER, self.owner.clone());
        let pair = self.installation.clone();
        set(metadata, "annotations", ANNOTATION_INSTALLATION, pair);
    }
}

/// Sets an annotation; what is not an object stays as it is.
pub fn annotate(object: &mut Value, name: &str, value: &str) {
    if let Some(metadata) = metadata_mut(object) {
        set(metadata, "annotations", name, value.to_owned());
    }
}

/// Whether an object is created where it does not exist, and never changed (annotation `kubectl-addons.dev/apply: create-only`,
/// semantics 12).
#[must_use]
pub fn is_create_only(object: &Value) -> bool {
    let annotation = || {
        object
            .get("metadata")?
            .get("annotations")?
            .get(ANNOTATION_APPLY)?
            .as_str()
    };
    annotation() == Some(APPLY_CREATE_ONLY)
}

/// The value of the owner label.
#[must_use]
pub fn owner_label(object: &Value) -> Option<&str> {
    object
        .get("metadata")?
        .get("labels")?
        .get(LABEL_OWNER)?
        .as_str()
}

/// The installation that the annotation names. Any client can write it: only [`is_owned_by`] decides.
#[must_use]
pub fn owner(object: &Value) -> Option<InstallationName> {
    let pair = object
        .get("metadata")?
        .get("annotations")?
        .get(ANNOTATION_INSTALLATION)?
        .as_str()?;
    let (namespace, name) = pair.split_once('/')?;
    Some(InstallationName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

/// Whether the owner label is that of an installation.
#[must_use]
pub fn is_owned_by(object: &Value, installation: &InstallationName) -> bool {
    owner_label(object) == Some(&owner_hash(&installation.namespace, &installation.name))
}

/// Gives a namespaced object without a namespace the target namespace, and removes it from a cluster-scoped one; the
/// latter is a warning (semantics 7).
#[must_use]
pub fn set_namespace(object: &mut Value, namespaced: bool, target: &str) -> Option<String> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or("?");
    let kind = kind.to_owned();
    let metadata = metadata_mut(object)?;
    if namespaced {
        if !metadata.contains_key("namespace") {
            metadata.insert("namespace".into(), target.into());
        }
        return None;
    }
    let namespace = metadata.remove("namespace")?;
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or("?");
    Some(format!(
        "{kind} {name} is cluster-scoped, but has namespace {}: the namespace is ignored",
        namespace.as_str().unwrap_or("?")
    ))
}

/// Fields of `metadata` that only the server writes.
const OF_SERVER: [&str; 8] = [
    "managedFields",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "generation",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];
/// Those of them that no generator writes: an object that has one was copied from a cluster.
const OF_EXPORT: [&str; 4] = ["managedFields", "resourceVersion", "uid", "selfLink"];

/// Removes what only a cluster can know: `status`, the server's fields of `metadata`, owners, and of an object that was copied from
/// a cluster also the finalizers. Sent to the server, these would claim fields, make every apply fail, have the object deleted
/// because its owner does not exist here, or hold its deletion for a controller that does not run. Returns the names of those
/// fields that someone may miss: generators of definitions write an empty `status` and `creationTimestamp`.
pub fn strip(object: &mut Value) -> Vec<&'static str> {
    let has = |value: Option<&Value>| value.is_some_and(|value| !is_empty(value));
    let metadata = object.get("metadata");
    let field = |name: &&&str| has(metadata.and_then(|metadata| metadata.get(**name)));
    let is_export = OF_EXPORT.iter().any(|name| field(&name));
    let mut missed = Vec::new();
    if is_export {
        missed.extend(OF_SERVER.iter().filter(field));
        missed.extend(has(object.get("status")).then_some("status"));
    }
    if let Value::Object(fields) = object {
        fields.remove("status");
    }
    let Some(metadata) = metadata_mut(object) else {
        return missed;
    };
    for name in OF_SERVER {
        metadata.remove(name);
    }
    if has(metadata.remove("ownerReferences").as_ref()) {
        missed.push("ownerReferences");
    }
    if is_export && has(metadata.remove("finalizers").as_ref()) {
        missed.push("finalizers");
    }
    missed
}

/// Null, or a list, map or text without content.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.as_object_mut()
}

/// Sets an entry of `labels` or `annotations`; a missing or null map is created.
fn set(metadata: &mut Map<String, Value>, map: &str, key: &str, value: String) {
    let map = metadata.entry(map).or_insert(Value::Null);
    if map.is_null() {
        *map = Value::Object(Map::new());
    }
    if let Value::Object(map) = map {
        map.insert(key.to_owned(), Value::String(value));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn installation() -> InstallationName {
        InstallationName {
            namespace: "kubectl-addons".into(),
            name: "web".into(),
        }
    }

    #[test]
    fn marks_are_added_to_what_is_there() {
        let mut object =
            json!({"metadata": {"name": "a", "labels": {"app": "x"}, "annotations": null}});
        Marks::of(&installation()).put_on(&mut object);
        let hash = owner_hash("kubectl-addons", "web");
        assert_eq!(
            object["metadata"],
            json!({
                "name": "a",
                "labels": {"app": "x", "kubectl-addons.dev/owner": hash},
                "annotations": {"kubectl-addons.dev/installation": "kubectl-addons/web"},
            })
        );
        assert_eq!(owner(&object), Some(installation()));
        assert!(is_owned_by(&object, &installation()));
        let other = InstallationName {
            name: "b".into(),
            ..installation()
        };
        assert!(!is_owned_by(&object, &other));
    }

    /// Semantics 7.
    #[test]
    fn the_namespace_follows_the_scope() {
        let mut object = json!({"kind": "Role", "metadata": {"name": "a"}});
        assert_eq!(set_namespace(&mut object, true, "web"), None);
        assert_eq!(object["metadata"]["namespace"], "web");
        assert_eq!(set_namespace(&mut object, true, "other"), None);
        assert_eq!(object["metadata"]["namespace"], "web");
        let mut object =
            json!({"kind": "ClusterRole", "metadata": {"name": "a", "namespace": "x"}});
        assert_eq!(
            set_namespace(&mut object, false, "web").as_deref(),
            Some("ClusterRole a is cluster-scoped, but has namespace x: the namespace is ignored")
        );
        assert_eq!(
            object,
            json!({"kind": "ClusterRole", "metadata": {"name": "a"}})
        );
        assert_eq!(set_namespace(&mut object, false, "web"), None);
    }

    #[test]
    fn fields_of_the_server_go() {
        let finalizers = json!(["a.example/wait"]);
        for (metadata, status, missed, left) in [
            // As a generator of definitions writes it.
            (
                json!({"creationTimestamp": null, "managedFields": [], "generation": 3, "finalizers": finalizers}),
                json!({"conditions": []}),
                &[][..],
                json!({"finalizers": finalizers}),
            ),
            // As `kubectl get -o yaml` writes it.
            (
                json!({"uid": "u", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z",
                    "ownerReferences": [{"uid": "o"}], "finalizers": finalizers}),
                json!({"phase": "Bound"}),
                &[
                    "resourceVersion",
                    "uid",
                    "creationTimestamp",
                    "status",
                    "ownerReferences",
                    "finalizers",
                ],
                json!({}),
            ),
            // As tools leave it that clean exports.
            (
                json!({"ownerReferences": [{"uid": "o"}]}),
                Value::Null,
                &["ownerReferences"],
                json!({}),
            ),
        ] {
            let mut object = json!({"metadata": metadata, "spec": {"status": 1}, "status": status});
            assert_eq!(strip(&mut object), missed, "{object}");
            assert_eq!(object, json!({"metadata": left, "spec": {"status": 1}}));
        }
    }
}
