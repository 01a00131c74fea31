//! Objects reduced to what verdicts read. Managed fields and the status, often the larger part of an object, are skipped, however deep
//! they nest.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An object with the text of its spec.
#[derive(Debug, Deserialize)]
pub(super) struct ObjectWithSpec<'a> {
    /// The metadata.
    #[serde(deserialize_with = "metadata")]
    pub(super) metadata: ObjectMeta,
    /// The text of the spec.
    #[serde(borrow)]
    pub(super) spec: &'a RawValue,
}

/// Reads the metadata fields that rules use.
///
/// # Errors
/// One of these fields has a wrong type.
pub fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RuleMetadata {
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        generate_name: Option<String>,
        #[serde(default)]
        namespace: Option<String>,
        #[serde(default)]
        uid: Option<String>,
        #[serde(default)]
        resource_version: Option<String>,
        #[serde(default)]
        labels: Option<BTreeMap<String, String>>,
        #[serde(default)]
        annotations: Option<BTreeMap<String, String>>,
        #[serde(default)]
        finalizers: Option<Vec<String>>,
        #[serde(default)]
        owner_references: Option<Vec<OwnerReference>>,
        #[serde(default)]
        creation_timestamp: Option<Time>,
        #[serde(default)]
        deletion_timestamp: Option<Time>,
    }
    let read = RuleMetadata::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: read.name,
        generate_name: read.generate_name,
        namespace: read.namespace,
        uid: read.uid,
        resource_version: read.resource_version,
        labels: read.labels,
        annotations: read.annotations,
        finalizers: read.finalizers,
        owner_references: read.owner_references,
        creation_timestamp: read.creation_timestamp,
        deletion_timestamp: read.deletion_timestamp,
        ..ObjectMeta::default()
    })
}
