//! Reads whole live objects: those of installations, for `list` and `status` (one LIST per kind and namespace, by owner label), and single
//! ones for steps and for `lookup` in charts.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;

use addons_plan::Step;
use addons_plan::snapshot::UnservedKind;
use common::api::installation::LiveState;
use common::api::names::{CLIENT, LABEL_OWNER, manager_of_owner};
use common::entrance;
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::{KindInfo, KindTable};
use common::manifest::managed_fields;

use super::address::Collection;
use super::addressed;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{self, ApiCall, JSON, METADATA_LIST};

/// The objects to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveSelection {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; `None` = all.
    pub namespace: Option<String>,
    /// Whether whole objects are read, instead of their metadata.
    pub whole: bool,
}

/// Reads the whole live object of a step; `None` if it does not exist.
pub(super) async fn read_step_object(
    cluster: &Cluster,
    step: &Step,
) -> Result<Option<Value>, EngineError> {
    read(
        cluster,
        &Collection::from_target(&step.target),
        &step.target.key.name,
    )
    .await
}

/// The objects that were read.
#[derive(Clone, Debug, Default)]
pub struct LiveObjects {
    /// The objects; apiVersion and kind are filled in.
    pub objects: Vec<Value>,
    /// Selections that could not be read, with the reason.
    pub unreadable: BTreeMap<LiveSelection, String>,
}

/// Reads the live objects that carry the owner label, with the given value if any. A kind that is not served has no objects only if it is
/// certain that they were deleted.
///
/// # Errors
/// The server cannot be reached.
pub async fn list_owned(
    cluster: &Cluster,
    kinds: &KindTable,
    selections: &BTreeSet<LiveSelection>,
    owner: Option<&str>,
) -> Result<LiveObjects, EngineError> {
    let selector = owner.map_or_else(
        || LABEL_OWNER.to_owned(),
        |owner| format!("{LABEL_OWNER}={owner}"),
    );
    let lists = selections.iter().map(async |selection| {
        let (group, kind) = (&selection.group, &selection.kind);
        let Some((gvk, info)) = kinds.preferred(group, kind) else {
            let found = match addressed::check_unserved(cluster, kinds, group, kind).await? {
                UnservedKind::Gone => Ok(Vec::new()),
                UnservedKind::Unknown(why) => Err(why),
            };
            return Ok((selection, found));
        };
        let collection = Collection::new(gvk, info, selection.namespace.as_deref());
        let form = if selection.whole { JSON } else { METADATA_LIST };
        match addressed::list(cluster, collection, Some(&selector), form, parse_listed).await {
            Ok((collection, objects)) => {
                let objects = objects.into_iter();
                let objects = objects.map(|object| with_type(object, &collection.gvk));
                Ok((selection, Ok(objects.collect())))
            }
            Err(error) if error.is_read_refusal() || error.is_unserved() => {
                Ok((selection, Err(error.describe())))
            }
            Err(error) => Err(error),
        }
    });
    let mut live = LiveObjects::default();
    for (selection, listed) in try_join_all(lists).await? {
        match listed {
            Ok(objects) => live.objects.extend(objects),
            Err(why) => {
                live.unreadable.insert(selection.clone(), why);
            }
        }
    }
    Ok(live)
}

/// Reads the live objects with these names, whatever their labels: `None` if an object does not exist, `Err` with the reason if it cannot
/// be read. A kind that is not served has no objects only if it is certain that they were deleted.
///
/// # Errors
/// The server cannot be reached.
pub async fn read_named(
    cluster: &Cluster,
    kinds: &KindTable,
    keys: Vec<ObjectKey>,
) -> Result<Vec<(ObjectKey, Result<Option<Value>, String>)>, EngineError> {
    let reads = keys.into_iter().map(async |key| {
        let Some((gvk, info)) = kinds.preferred(&key.group, &key.kind) else {
            let found =
                match addressed::check_unserved(cluster, kinds, &key.group, &key.kind).await? {
                    UnservedKind::Gone => Ok(None),
                    UnservedKind::Unknown(why) => Err(why),
                };
            return Ok((key, found));
        };
        match get(cluster, &gvk, info, key.namespace.as_deref(), &key.name).await {
            Ok(found) => Ok((key, Ok(found))),
            Err(error) if error.is_read_refusal() || error.is_unserved() => {
                Ok((key, Err(error.describe())))
            }
            Err(error) => Err(error),
        }
    });
    stream::iter(reads)
        .buffered(cluster.concurrency())
        .try_collect()
        .await
}

/// Reads one object in this version of its kind; `None` if it does not exist.
///
/// # Errors
/// Those of the request.
pub async fn get(
    cluster: &Cluster,
    gvk: &Gvk,
    info: &KindInfo,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<Value>, EngineError> {
    let collection = Collection::new(gvk.clone(), info, namespace);
    read(cluster, &collection, name).await
}

/// Reads a whole object; `None` if it does not exist.
pub(super) async fn read(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
) -> Result<Option<Value>, EngineError> {
    let call = |at: &Collection| ApiCall::get(at, name, JSON);
    request::if_found(addressed::send(cluster, &mut collection.clone(), name, call).await)
}

/// Adds apiVersion and kind, which list items do not have.
fn with_type(mut object: Value, gvk: &Gvk) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), gvk.api_version().into());
        fields.insert("kind".to_owned(), gvk.kind.clone().into());
    }
    object
}

/// Returns the state of a live object from which edits are detected.
#[must_use]
pub fn live_state<'a>(object: &'a Value, fields: &'a str) -> LiveState<'a> {
    let metadata = &object["metadata"];
    LiveState {
        uid: metadata["uid"].as_str().unwrap_or_default(),
        generation: metadata["generation"].as_i64(),
        resource_version: metadata["resourceVersion"].as_str().unwrap_or_default(),
        fields,
    }
}

/// Returns the digest of the fields that the field manager of an object's owner owns; empty without an owner.
#[must_use]
pub fn fields_of(object: &Value) -> String {
    let metadata = &object["metadata"];
    let owner = metadata["labels"][LABEL_OWNER].as_str();
    let entries = metadata["managedFields"].as_array();
    match (owner, entries) {
        (Some(owner), Some(entries)) => {
            managed_fields::digest_of_owned(entries, &manager_of_owner(owner))
        }
        _ => String::new(),
    }
}

/// Parses an object of a list. The fields of other managers, a third of its size, are not used and are dropped before the next object is
/// parsed.
fn parse_listed(text: &str) -> Result<Value, serde_json::Error> {
    let mut object = entrance::read_object(text)?;
    let entries = object.pointer_mut("/metadata/managedFields");
    let entries = entries.and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        let manager = entry["manager"].as_str();
        let is_ours = manager.is_some_and(|manager| manager.starts_with(CLIENT));
        if let Some(entry) = entry.as_object_mut().filter(|_| !is_ours) {
            entry.remove("fieldsV1");
        }
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    /// Semantics 13.6: an object that cannot be read may exist.
    #[tokio::test]
    async fn objects_of_a_group_that_is_not_served_are_unknown() {
        let (cluster, asked) = fake::cluster(Vec::new());
        let key = ObjectKey {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        };
        let found = read_named(&cluster, &KindTable::default(), vec![key]).await;
        let found = found.unwrap();
        assert!(matches!(found.as_slice(), [(_, Err(_))]), "{found:?}");
        assert_eq!(asked.lines(), [""; 0]);
    }
}
