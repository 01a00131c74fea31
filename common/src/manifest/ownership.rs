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

/// Removes what only the server writes: `status` and the server's fields of `metadata`. In a manifest that was
/// copied from a cluster they would claim fields or make every apply fail.
pub fn strip(object: &mut Value) {
    if let Value::Object(fields) = object {
        fields.remove("status");
    }
    if let Some(metadata) = metadata_mut(object) {
        for field in [
            "managedFields",
            "resourceVersion",
            "uid",
            "creationTimestamp",
            "generation",
            "selfLink",
        ] {
            metadata.remove(field);
        }
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
        let mut object = json!({
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "creationTimestamp": null,
                "managedFields": [], "generation": 3},
            "spec": {"status": 1},
            "status": {},
        });
        strip(&mut object);
        assert_eq!(
            object,
            json!({"metadata": {"name": "a"}, "spec": {"status": 1}})
        );
    }
}
