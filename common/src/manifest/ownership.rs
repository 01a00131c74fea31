//! Ownership marks, and fields that only the server writes.

use serde_json::{Map, Value};

use crate::api::names::{
    ANNOTATION_APPLY, ANNOTATION_INSTALLATION, APPLY_CREATE_ONLY, InstallationName, LABEL_OWNER,
    owner_hash,
};

/// The marks of all objects of an installation: owner label and installation annotation (semantics 5).
#[derive(Clone, Debug)]
pub struct OwnershipMarks {
    owner: String,
    installation: String,
}

impl OwnershipMarks {
    /// Returns the marks of an installation.
    #[must_use]
    pub fn for_installation(installation: &InstallationName) -> Self {
        Self {
            owner: owner_hash(&installation.namespace, &installation.name),
            installation: installation.to_string(),
        }
    }

    /// Adds the marks to an object.
    pub fn add_to(&self, object: &mut Value) {
        let Some(metadata) = metadata_mut(object) else {
            return;
        };
        set_entry(metadata, "labels", LABEL_OWNER, self.owner.clone());
        let pair = self.installation.clone();
        set_entry(metadata, "annotations", ANNOTATION_INSTALLATION, pair);
    }
}

/// Sets an annotation. A value that is not an object stays unchanged.
pub fn annotate(object: &mut Value, name: &str, value: &str) {
    if let Some(metadata) = metadata_mut(object) {
        set_entry(metadata, "annotations", name, value.to_owned());
    }
}

/// Returns whether an object is only created if it does not exist, and never changed (annotation `kubectl-addons.dev/apply: create-only`,
/// semantics 12.9).
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

/// Returns the value of the owner label.
#[must_use]
pub fn owner_label(object: &Value) -> Option<&str> {
    object
        .get("metadata")?
        .get("labels")?
        .get(LABEL_OWNER)?
        .as_str()
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
/// The fields of these that no generator writes. An object with one of them was copied from a cluster.
const OF_EXPORT: [&str; 4] = ["managedFields", "resourceVersion", "uid", "selfLink"];

/// Removes data that only a cluster can know: `status`, the server's fields of `metadata`, owners, and from an object copied from a cluster
/// also the finalizers (semantics 12.8). If sent to the server, they would claim fields, make every apply fail, have the object deleted
/// because its owner does not exist here, or block its deletion for a controller that does not run. Returns the names of removed fields
/// that a user may miss. Generators of definitions write an empty `status` and `creationTimestamp`; those are not returned.
pub fn strip_server_fields(object: &mut Value) -> Vec<&'static str> {
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

/// Returns whether a value is null, or an empty list, map or text.
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

/// Sets an entry of `labels` or `annotations`. A missing or null map is created.
fn set_entry(metadata: &mut Map<String, Value>, map: &str, key: &str, value: String) {
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

    #[test]
    fn marks_are_added_to_what_is_there() {
        let mut object =
            json!({"metadata": {"name": "a", "labels": {"app": "x"}, "annotations": null}});
        let installation = InstallationName {
            namespace: "kubectl-addons".into(),
            name: "web".into(),
        };
        OwnershipMarks::for_installation(&installation).add_to(&mut object);
        let hash = owner_hash("kubectl-addons", "web");
        assert_eq!(
            object["metadata"],
            json!({
                "name": "a",
                "labels": {"app": "x", "kubectl-addons.dev/owner": hash},
                "annotations": {"kubectl-addons.dev/installation": "kubectl-addons/web"},
            })
        );
        assert_eq!(owner_label(&object), Some(hash.as_str()));
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
            assert_eq!(strip_server_fields(&mut object), missed, "{object}");
            assert_eq!(object, json!({"metadata": left, "spec": {"status": 1}}));
        }
    }
}
