//! The parts of live metadata that the engine reads. The rest is skipped while parsing, including most of managedFields.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use common::api::names::{self, CLIENT};
use common::entrance::{self, or_default};
use common::manifest::{digest, managed_fields};

/// An object that was requested with its metadata only.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct PartialObject {
    #[serde(default)]
    pub(super) metadata: LiveMetadata,
}

/// Metadata of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LiveMetadata {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) uid: String,
    pub(super) generation: Option<i64>,
    pub(super) resource_version: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) creation_timestamp: Option<Timestamp>,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) finalizers: Vec<String>,
    pub(super) owner_references: Vec<OwnerReference>,
    /// Its writers, from managedFields; of their fields only digests are kept, and whether `spec.replicas` is among them.
    #[serde(rename = "managedFields", deserialize_with = "writers")]
    pub(super) writers: Vec<FieldWriter>,
}

impl LiveMetadata {
    /// Returns the digest of the fields that an owner's field manager owns; empty if it owns none.
    pub(super) fn fields_of(&self, owner: &str) -> String {
        let manager = names::manager_of_owner(owner);
        let found = self.writers.iter().find(|writer| writer.manager == manager);
        found.map(|writer| writer.owned.clone()).unwrap_or_default()
    }

    /// Returns a digest of who wrote which fields when, except through subresources such as the status.
    pub(super) fn digest_of_writes(&self) -> String {
        let writers = self.writers.iter().filter(|one| one.subresource.is_empty());
        let writes = writers.map(|one| json!([one.manager, one.operation, one.time, one.digest]));
        digest::digest(&writes.collect())
    }
}

/// An entry of managedFields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldWriter {
    pub(super) manager: String,
    pub(super) operation: String,
    pub(super) subresource: String,
    /// When the manager last wrote.
    pub(super) time: Option<Timestamp>,
    /// Whether it owns `spec.replicas`.
    pub(super) sets_replicas: bool,
    /// Digest of the text of its fields.
    pub(super) digest: String,
    /// Digest of all fields that a manager of this client owns in the object; empty for other managers.
    pub(super) owned: String,
}

impl FieldWriter {
    /// Returns whether it is the field manager of an installation.
    pub(super) fn is_installation(&self) -> bool {
        is_installation(&self.manager)
    }
}

fn is_installation(manager: &str) -> bool {
    let rest = manager.strip_prefix(CLIENT);
    rest.is_some_and(|rest| rest.starts_with('.'))
}

/// Parses the entries of managedFields.
fn writers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<FieldWriter>, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct ManagerEntry {
        manager: String,
        operation: String,
        subresource: String,
        time: Option<Timestamp>,
        #[serde(rename = "fieldsV1")]
        fields: Option<Box<RawValue>>,
    }
    #[derive(Deserialize)]
    struct OutlinedFields {
        #[serde(rename = "f:spec")]
        spec: Option<OutlinedSpec>,
    }
    #[derive(Deserialize)]
    struct OutlinedSpec {
        #[serde(rename = "f:replicas")]
        replicas: Option<IgnoredAny>,
    }
    let entries: Vec<ManagerEntry> = or_default(deserializer)?;
    let ours: Vec<Value> = entries
        .iter()
        .filter(|entry| is_installation(&entry.manager))
        .filter_map(|entry| {
            // Fields that nest too deep are not ours: the object counts as edited.
            let fields = serde_json::to_value(&entry.fields).ok()?;
            Some(json!({"manager": entry.manager, "subresource": entry.subresource, "fieldsV1": fields}))
        })
        .collect();
    let writers = entries.iter().map(|entry| {
        let text = entry.fields.as_ref().map(|fields| fields.get());
        let fields =
            text.and_then(|text| entrance::read_outline::<OutlinedFields>(text.as_bytes()).ok());
        let spec = fields.and_then(|fields| fields.spec);
        FieldWriter {
            sets_replicas: spec.is_some_and(|spec| spec.replicas.is_some()),
            digest: text
                .map(|text| digest::sha256(text.as_bytes()))
                .unwrap_or_default(),
            owned: if is_installation(&entry.manager) {
                managed_fields::digest_of_owned(&ours, &entry.manager)
            } else {
                String::new()
            },
            manager: entry.manager.clone(),
            operation: entry.operation.clone(),
            subresource: entry.subresource.clone(),
            time: entry.time,
        }
    });
    Ok(writers.collect())
}

/// A reference to an owner, with which the object is deleted.
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
    /// Number of objects after this page; 0 if the server does not say.
    pub(super) remaining_item_count: usize,
}

#[cfg(test)]
mod tests {
    use super::super::apply::written_fields;
    use super::super::live;
    use super::*;

    /// Plans, answers, lists and watches agree on what was edited.
    #[test]
    fn every_reader_sees_the_same_fields() {
        let (owner, ours) = ("0123456789abcdef", "kubectl-addons.0123456789abcdef");
        let entry = |manager: &str, operation: &str, subresource: &str, fields: Value| json!({"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields});
        let object = |theirs: &str, own: Value| {
            json!({"metadata": {"name": "a", "labels": {names::LABEL_OWNER: owner}, "managedFields": [
                entry(ours, "Apply", "", own),
                entry(ours, "Update", "", json!({"f:spec": {"f:image": {}}})),
                entry("kubectl-edit", "Update", "", json!({theirs: {}})),
                entry("controller", "Update", "status", json!({"f:status": {}})),
            ]}})
        };
        let own = json!({"f:spec": {"f:replicas": {}}});
        let digest = |object: &Value| {
            let partial: PartialObject = serde_json::from_str(&object.to_string()).unwrap();
            let digest = partial.metadata.fields_of(owner);
            assert_eq!(live::fields_of(object), digest);
            assert_eq!(written_fields(object, ours), digest);
            digest
        };
        let applied = digest(&object("f:data", own.clone()));
        assert!(!applied.is_empty());
        assert_eq!(digest(&object("f:more", own)), applied, "a field of others");
        assert_ne!(
            digest(&object("f:data", json!({}))),
            applied,
            "a field of ours"
        );
        let writes = |object: Value| {
            let partial: PartialObject = serde_json::from_str(&object.to_string()).unwrap();
            partial.metadata.digest_of_writes()
        };
        let (one, other) = (object("f:a", json!({})), object("f:b", json!({})));
        assert_ne!(writes(one), writes(other));
    }
}
