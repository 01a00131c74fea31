//! The inventory: every object of an installation with what is known of it (semantics 13).
//!
//! Laws: the union of old and new is recorded before the first write, the exact set after the last.

use std::collections::BTreeMap;

use crate::api::installation::InventoryObject;
use crate::manifest::key::ObjectKey;

/// The inventory of one installation, by key. [`crate::api::installation::InventoryGroup`] is its stored shape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// Objects by key.
    pub objects: BTreeMap<ObjectKey, Item>,
}

/// One object and the API version that it was applied in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// API version.
    pub version: String,
    /// What is known.
    pub object: InventoryObject,
}
