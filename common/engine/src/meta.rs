//! Metadata of live objects, as far as the engine reads it: managedFields and the rest are skipped while parsing.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// A value that Go writes as `null` where it is empty.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// An object of which only the metadata was asked for.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Partial {
    #[serde(default)]
    pub(super) metadata: Metadata,
}

/// A page of such objects.
#[derive(Debug, Deserialize)]
pub(super) struct PartialList {
    #[serde(default)]
    pub(super) metadata: ListMetadata,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) items: Vec<Partial>,
}

/// Metadata of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) uid: String,
    pub(super) generation: Option<i64>,
    pub(super) resource_version: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) finalizers: Vec<String>,
    pub(super) owner_references: Vec<OwnerReference>,
}

/// What an object goes with.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OwnerReference {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) controller: bool,
}

/// Metadata of a list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListMetadata {
    pub(super) resource_version: String,
    pub(super) r#continue: String,
    /// Objects behind this page; 0 where the server does not tell.
    pub(super) remaining_item_count: usize,
}
