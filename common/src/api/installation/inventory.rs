//! The inventory of an installation, as its record keeps it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The objects of one kind in one namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InventoryGroup {
    /// API group, absent for core.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version that the objects were applied in.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, absent for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The objects, sorted by name.
    pub objects: Vec<InventoryObject>,
}

/// One object of the inventory; short, for 5,000 of them must fit into 0.8 MB (semantics 13).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InventoryObject {
    /// Name.
    pub name: String,
    /// What we know of it; absent = owned.
    #[serde(default, skip_serializing_if = "ObjectState::is_owned")]
    pub state: ObjectState,
    /// uid of the live object; absent while planned.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// First 20 hex digits of the sha256 of the applied manifest; absent for Secrets, whose digest could be guessed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// metadata.generation after our apply; absent where the kind has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// metadata.resourceVersion after our apply, only where the kind has no generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Fields of the applied manifest that were left to other managers (conflicts: Yield): the live object differs there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yielded: Vec<String>,
}

/// What we know of an object in the inventory (semantics 13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObjectState {
    /// Created by us: ours to delete.
    #[default]
    Owned,
    /// About to be created; ours if the live object carries our label.
    Planned,
    /// It was there before: our fields are released, it is never deleted.
    Preexisting,
    /// Ours, gone from the manifest, kept because its kind holds data (Namespace, CRD, PVC, PV).
    Retained,
}

impl ObjectState {
    /// Whether this is [`ObjectState::Owned`], which is not written.
    #[must_use]
    pub fn is_owned(&self) -> bool {
        *self == Self::Owned
    }
}

impl InventoryObject {
    /// Whether another client edited the live object since our last apply, or made another one of that name. Labels do not count in
    /// the generation.
    #[must_use]
    pub fn was_edited(&self, uid: &str, generation: Option<i64>, resource_version: &str) -> bool {
        let moved = match self.generation {
            Some(recorded) => generation != Some(recorded),
            None => self.resource_version.as_deref() != Some(resource_version),
        };
        moved || uid != self.uid
    }
}
