//! The inventory of an installation, as stored in its record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The objects of one kind in one namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryGroup {
    /// API group; absent for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version in which the objects were applied.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; absent for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The objects, sorted by name.
    pub objects: Vec<InventoryObject>,
}

/// An object in the inventory. It is short, because 5,000 of them must fit into 0.8 MB (semantics 13.4).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InventoryObject {
    /// Name.
    pub name: String,
    /// Relation of the object to the installation; owned if absent.
    #[serde(default, skip_serializing_if = "ObjectState::is_owned")]
    pub state: ObjectState,
    /// uid of the live object; absent while planned.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// First 20 hex digits of the sha256 of the applied manifest; absent for Secrets, whose digest could be guessed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// metadata.generation after the last apply; only if the server does not say which manager owns which field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// metadata.resourceVersion after the last apply; only if there are neither owners of fields nor a generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Digest of the set of fields that the installation's field manager owned after the last apply (metadata.managedFields). Another
    /// digest means an edit. Empty while an operation may write the object, and after it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<String>,
    /// Fields of the applied manifest that were left to other field managers (conflicts: Yield), so that the live object differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yielded: Vec<String>,
}

/// Iterates over the namespaces that contain objects of an inventory, and those that are objects in it.
pub fn namespaces(inventory: &[InventoryGroup]) -> impl Iterator<Item = &str> {
    inventory.iter().flat_map(|group| {
        let is_namespace = group.kind == "Namespace" && group.group.is_empty();
        let objects = group.objects.iter().filter(move |_| is_namespace);
        let named = objects.map(|object| object.name.as_str());
        named.chain(group.namespace.as_deref())
    })
}

/// The relation of an object to its installation (semantics 13.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObjectState {
    /// The installation created it, and may delete it.
    #[default]
    Owned,
    /// It is about to be created. It is owned if the live object carries the owner label.
    Planned,
    /// It existed before. Fields of the installation are released, but it is never deleted.
    Preexisting,
    /// Owned, but no longer in the manifest; kept because its kind holds data (Namespace, CRD, PVC, PV).
    Retained,
}

impl ObjectState {
    /// Whether this is [`ObjectState::Owned`], which is not written.
    #[must_use]
    pub fn is_owned(&self) -> bool {
        *self == Self::Owned
    }
}

/// The fields of a live object that show whether it was edited.
#[derive(Clone, Copy, Debug)]
pub struct LiveState<'a> {
    /// metadata.uid.
    pub uid: &'a str,
    /// metadata.generation, or `None` if the kind has none.
    pub generation: Option<i64>,
    /// metadata.resourceVersion.
    pub resource_version: &'a str,
    /// Digest of the fields that its owner's field manager owns.
    pub fields: &'a str,
}

impl InventoryObject {
    /// Whether, since the last apply, another client changed or removed a field that the installation owns, or created another object
    /// with this name. What others add is not an edit: a status, the rules of an aggregated role, a CA bundle, replicas that the
    /// manifest leaves open (semantics 12.5).
    ///
    /// A record of an older version has no fields: then the generation decides, or the resourceVersion for a kind without one.
    #[must_use]
    pub fn was_edited(&self, live: &LiveState<'_>) -> bool {
        let moved = match (&self.fields, self.generation) {
            (Some(recorded), _) => recorded.is_empty() || recorded != live.fields,
            (None, Some(recorded)) => live.generation != Some(recorded),
            (None, None) => self.resource_version.as_deref() != Some(live.resource_version),
        };
        moved || live.uid != self.uid
    }

    /// Records the state of a live object after an apply: the fields that the installation owns or, if the server does not name
    /// owners, the generation or resourceVersion.
    pub fn record_live_state(&mut self, live: &LiveState<'_>) {
        live.uid.clone_into(&mut self.uid);
        self.fields = Some(live.fields.to_owned()).filter(|fields| !fields.is_empty());
        let has_no_fields = self.fields.is_none();
        self.generation = live.generation.filter(|_| has_no_fields);
        let has_no_version = has_no_fields && live.generation.is_none();
        self.resource_version = has_no_version.then(|| live.resource_version.to_owned());
    }

    /// Clears the recorded state before an operation writes the object. If the operation is interrupted, the object counts as edited,
    /// because our own write changes values but not the ownership of fields (semantics 12.5).
    pub fn clear_live_state(&mut self) {
        if self.is_versioned() {
            self.fields = Some(String::new());
            self.generation = None;
            self.resource_version = None;
        }
    }

    /// Whether the state after the last apply is recorded.
    #[must_use]
    pub fn is_versioned(&self) -> bool {
        let has_fields = self
            .fields
            .as_ref()
            .is_some_and(|fields| !fields.is_empty());
        has_fields || self.generation.is_some() || self.resource_version.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_a_change_of_our_fields() {
        let live = |generation, resource_version, fields| LiveState {
            uid: "u",
            generation,
            resource_version,
            fields,
        };
        let recorded =
            |generation, resource_version: Option<&str>, fields: Option<&str>| InventoryObject {
                uid: "u".to_owned(),
                generation,
                resource_version: resource_version.map(str::to_owned),
                fields: fields.map(str::to_owned),
                ..InventoryObject::default()
            };
        for (recorded, live, edited) in [
            // A status moves the resourceVersion, another client's fields the generation.
            (recorded(None, None, Some("a")), live(None, "2", "a"), false),
            (
                recorded(Some(1), None, Some("a")),
                live(Some(2), "2", "a"),
                false,
            ),
            (
                recorded(Some(1), None, Some("a")),
                live(Some(2), "2", "b"),
                true,
            ),
            (
                recorded(Some(1), None, Some("a")),
                live(Some(1), "2", ""),
                true,
            ),
            // Records of older versions.
            (
                recorded(Some(1), None, None),
                live(Some(1), "2", "a"),
                false,
            ),
            (recorded(Some(1), None, None), live(Some(2), "2", "a"), true),
            (recorded(None, Some("1"), None), live(None, "1", "a"), false),
            (recorded(None, Some("1"), None), live(None, "2", "a"), true),
        ] {
            assert_eq!(recorded.was_edited(&live), edited, "{recorded:?} {live:?}");
            let other = LiveState { uid: "v", ..live };
            assert!(recorded.was_edited(&other));
            let mut cut_off = recorded.clone();
            cut_off.clear_live_state();
            assert!(cut_off.was_edited(&live) && !cut_off.is_versioned());
        }
    }
}
