//! The facts that a plan was made with: the entry, the record, the live objects. A plan that is made again compares them to find what
//! changed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::inventory::Inventory;
use super::snapshot::{LiveObject, Snapshot};
use common::api::installation::{AddonInstallation, AddonInstallationSpec};
use common::api::names::ANNOTATION_WRITTEN_BY;
use common::catalogue::{CatalogueEntry, Origin};
use common::manifest::digest::digest;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;

/// An entry of a catalogue or index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryFacts {
    /// The add-on.
    pub addon: String,
    /// The catalogue or index of the entry.
    pub origin: Origin,
    /// Its position in the catalogue or index, for display.
    pub place: String,
    /// Digest of the entry.
    pub digest: String,
}

/// The record that a plan results in, without the annotation that names its writer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WantedRecord {
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Its finalizers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Its spec.
    pub spec: AddonInstallationSpec,
}

/// The record as it was when the plan was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordFacts {
    /// Its uid.
    pub uid: String,
    /// Digest of its spec, labels and annotations.
    pub spec: String,
    /// Digest of its inventory.
    pub inventory: String,
    /// Whether an operation is running or was interrupted.
    pub operation: bool,
}

/// The state of the cluster when a plan was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanFacts {
    /// The desired and recorded objects that exist, sorted by key.
    pub live: Vec<LiveFact>,
    /// The namespaces of these objects that exist.
    pub namespaces: BTreeSet<String>,
    /// The kinds of the desired and recorded objects, as the cluster serves them.
    pub kinds: Vec<KindFact>,
}

/// One live object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LiveFact {
    /// The object.
    pub key: ObjectKey,
    /// Its uid.
    pub uid: String,
    /// metadata.generation; absent if the kind has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Digest of the managedFields, except those of the status, if the kind has no generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<String>,
    /// Value of the owner label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it is being deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminating: bool,
}

/// A kind, and how the cluster serves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindFact {
    /// API group, empty for core.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Its preferred version and plural, separated by a slash; absent if the cluster does not serve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
}

impl EntryFacts {
    /// Reads the facts of an entry.
    #[must_use]
    pub fn from_entry(entry: &CatalogueEntry) -> Self {
        Self {
            addon: entry.addon.clone(),
            origin: (*entry.origin).clone(),
            place: entry.place.clone(),
            digest: digest(&json!(entry.version)),
        }
    }
}

impl WantedRecord {
    /// Reads the wanted state from a record.
    #[must_use]
    pub fn from_record(record: &AddonInstallation) -> Self {
        let metadata = &record.metadata;
        let map = |map: &Option<BTreeMap<String, String>>| map.clone().unwrap_or_default();
        let mut annotations = map(&metadata.annotations);
        annotations.remove(ANNOTATION_WRITTEN_BY);
        Self {
            labels: map(&metadata.labels),
            annotations,
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            spec: record.spec.clone(),
        }
    }
}

impl RecordFacts {
    /// Reads the facts of a stored record.
    #[must_use]
    pub fn from_record(record: &AddonInstallation) -> Self {
        let status = record.status.as_ref();
        let inventory = status.map(|status| &status.inventory);
        let installed = status.map(|status| &status.installed);
        Self {
            uid: record.metadata.uid.clone().unwrap_or_default(),
            spec: digest(&json!(WantedRecord::from_record(record))),
            inventory: digest(&json!((inventory, installed))),
            operation: status.is_some_and(|status| status.operation.is_some()),
        }
    }
}

impl PlanFacts {
    /// Collects the live objects of a snapshot, and how the cluster serves the kinds of all objects in the inventory `ours`.
    #[must_use]
    pub fn from_snapshot(ours: &Inventory, snapshot: &Snapshot, kinds: &KindTable) -> Self {
        let live = snapshot
            .live
            .iter()
            .map(|(key, live)| LiveFact::from_live(key, live));
        let keys = ours.objects.keys();
        let named: BTreeSet<(&str, &str)> = keys.map(|key| (&*key.group, &*key.kind)).collect();
        let kinds = named.into_iter().map(|(group, kind)| KindFact {
            group: group.to_owned(),
            kind: kind.to_owned(),
            served: kinds
                .preferred(group, kind)
                .map(|(gvk, info)| format!("{}/{}", gvk.version, info.plural)),
        });
        Self {
            live: live.collect(),
            namespaces: snapshot.namespaces.clone(),
            kinds: kinds.collect(),
        }
    }
}

impl LiveFact {
    fn from_live(key: &ObjectKey, live: &LiveObject) -> Self {
        Self {
            key: key.clone(),
            uid: live.uid.clone(),
            generation: live.generation,
            writes: live.generation.is_none().then(|| live.writes.clone()),
            owner: live.owner.clone(),
            terminating: live.terminating,
        }
    }
}
