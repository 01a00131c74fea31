//! What a plan was made with: the entry, the record, the live objects. A plan that is made again tells by them what moved.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::inventory::Inventory;
use super::snapshot::{LiveObject, Snapshot};
use common::api::installation::{AddonInstallation, AddonInstallationSpec};
use common::api::names::ANNOTATION_WRITTEN_BY;
use common::catalogue::{Entry, Origin};
use common::manifest::digest::digest;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;

/// An entry of a catalogue or index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryFacts {
    /// The add-on.
    pub addon: String,
    /// Where the entry comes from.
    pub origin: Origin,
    /// Its place there, for people.
    pub place: String,
    /// Digest of the entry.
    pub digest: String,
}

/// The record that a plan leads to, whoever writes it.
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

/// The record that a plan was made with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordFacts {
    /// Its uid.
    pub uid: String,
    /// Digest of its spec, labels and annotations.
    pub spec: String,
    /// Digest of its inventory.
    pub inventory: String,
    /// Whether an operation runs, or was cut off.
    pub operation: bool,
}

/// What was there when a plan was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Facts {
    /// The wanted and recorded objects that exist, sorted by key.
    pub live: Vec<LiveFact>,
    /// The namespaces that objects stand in, as far as they exist.
    pub namespaces: BTreeSet<String>,
    /// The kinds of the wanted and recorded objects, as the cluster serves them.
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
    /// metadata.generation; absent where the kind has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Digest of who wrote which fields and when, but for the status, where the kind has no generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<String>,
    /// Value of the owner label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it is being deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminating: bool,
}

/// How a kind is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindFact {
    /// API group, empty for core.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Its preferred version and, behind a slash, its plural; absent where the cluster does not serve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
}

impl EntryFacts {
    /// Of an entry.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        Self {
            addon: entry.addon.clone(),
            origin: (*entry.origin).clone(),
            place: entry.place.clone(),
            digest: digest(&json!(entry.version)),
        }
    }
}

impl WantedRecord {
    /// Of a record as it should be.
    #[must_use]
    pub fn of(record: &AddonInstallation) -> Self {
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
    /// Of a record as it is.
    #[must_use]
    pub fn of(record: &AddonInstallation) -> Self {
        let status = record.status.as_ref();
        let inventory = status.map(|status| &status.inventory);
        let installed = status.map(|status| &status.installed);
        Self {
            uid: record.metadata.uid.clone().unwrap_or_default(),
            spec: digest(&json!(WantedRecord::of(record))),
            inventory: digest(&json!((inventory, installed))),
            operation: status.is_some_and(|status| status.operation.is_some()),
        }
    }
}

impl Facts {
    /// What a snapshot found, and how the cluster serves the kinds of everything that is or was ours.
    #[must_use]
    pub fn of(ours: &Inventory, snapshot: &Snapshot, kinds: &KindTable) -> Self {
        let live = snapshot
            .live
            .iter()
            .map(|(key, live)| LiveFact::of(key, live));
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
    fn of(key: &ObjectKey, live: &LiveObject) -> Self {
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
