//! Metadata of live objects, as far as the engine reads it: the rest is skipped while parsing, and so is most of managedFields.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::IgnoredAny;
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
    /// Who wrote it; of the fields in managedFields only `spec.replicas` is looked at.
    #[serde(rename = "managedFields", deserialize_with = "writers")]
    pub(super) writers: Vec<Writer>,
}

/// A field manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) manager: String,
    pub(super) subresource: String,
    /// When it last wrote.
    pub(super) time: Option<Timestamp>,
    /// Whether it holds `spec.replicas`.
    pub(super) sets_replicas: bool,
}

/// The entries of managedFields.
fn writers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Writer>, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Entry {
        manager: String,
        subresource: String,
        time: Option<Timestamp>,
        #[serde(rename = "fieldsV1")]
        fields: Option<Fields>,
    }
    #[derive(Deserialize)]
    struct Fields {
        #[serde(rename = "f:spec")]
        spec: Option<Spec>,
    }
    #[derive(Deserialize)]
    struct Spec {
        #[serde(rename = "f:replicas")]
        replicas: Option<IgnoredAny>,
    }
    let entries: Vec<Entry> = or_default(deserializer)?;
    let writers = entries.into_iter().map(|entry| {
        let spec = entry.fields.and_then(|fields| fields.spec);
        Writer {
            manager: entry.manager,
            subresource: entry.subresource,
            time: entry.time,
            sets_replicas: spec.is_some_and(|spec| spec.replicas.is_some()),
        }
    });
    Ok(writers.collect())
}

/// The owner that an object is deleted with.
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
    /// Objects after this page; 0 where the server does not say.
    pub(super) remaining_item_count: usize,
}
