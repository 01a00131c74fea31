//! Hides the records of another tool from it, restores them when the objects that they name are given back, or deletes them with these
//! objects (semantics 12.12).
//!
//! A tool finds its records by labels. Hiding removes these labels, and an annotation keeps them. A key of the data of a record that the
//! tool also finds by its name is renamed.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use addons_plan::closing::{HiddenObject, HiddenRecords, record_key};
use addons_plan::prune::PruneObstacle;
use common::api::installation::{FormerObject, FormerRecord};
use common::api::names::{
    ANNOTATION_SET_ASIDE, CLIENT, InstallationName, LABEL_SET_ASIDE, owner_hash,
};
use common::entrance;

use super::address::Collection;
use super::cluster::Cluster;
use super::delete::{DeletionTarget, Propagation, delete};
use super::error::EngineError;
use super::meta::LiveMetadata;
use super::request::{ApiCall, JSON, MERGE_PATCH, METADATA};
use super::snapshot::read_selected;

/// How often to retry a record that its tool writes meanwhile.
const TRIES: usize = 5;
/// Prefix of a key of the data while the record is hidden.
const HIDDEN_KEY: &str = "set-aside.";

/// A record with its content.
#[derive(Deserialize)]
pub(super) struct FormerContent {
    pub(super) metadata: LiveMetadata,
    #[serde(default)]
    pub(super) data: BTreeMap<String, String>,
}

/// Asks the server, with a dry run, whether the records may be hidden.
///
/// # Errors
/// Those of the request, such as a refusal.
pub async fn check(
    cluster: &Cluster,
    installation: &InstallationName,
    hidden: &HiddenRecords,
) -> Result<(), EngineError> {
    match hidden.objects.last() {
        Some(object) => hide_object(cluster, installation, &hidden.record, object, true).await,
        None => Ok(()),
    }
}

/// Hides records one after another, the newest last, so that after an interruption the tool still finds what is installed.
///
/// If the tool has written another record since the plan was made, nothing is written: the tool would still find that record, and could
/// delete objects that we own.
pub(super) async fn hide(
    cluster: &Cluster,
    installation: &InstallationName,
    hidden: &HiddenRecords,
) -> Result<(), EngineError> {
    check_listed(cluster, hidden).await?;
    for object in &hidden.objects {
        hide_object(cluster, installation, &hidden.record, object, false).await?;
    }
    Ok(())
}

async fn check_listed(cluster: &Cluster, hidden: &HiddenRecords) -> Result<(), EngineError> {
    let record = &hidden.record;
    let (Some(selector), Some(last)) = (&hidden.selector, record.objects.last()) else {
        return Ok(());
    };
    let collection = collection(&last.kind, &record.namespace);
    let found = read_selected(cluster, &collection, &[("labelSelector", selector)]).await?;
    let is_listed = |found: &LiveMetadata| {
        let mut listed = record.objects.iter();
        listed.any(|object| object.name == found.name && object.uid == found.uid)
    };
    if found.iter().flatten().all(is_listed) {
        return Ok(());
    }
    Err(EngineError::conflict(
        record_key(record, last),
        format!(
            "{record} was changed with {} meanwhile, and its records stay; run the command again",
            record.tool
        ),
    ))
}

/// Moves the labels of one object to an annotation.
async fn hide_object(
    cluster: &Cluster,
    installation: &InstallationName,
    record: &FormerRecord,
    hidden: &HiddenObject,
    dry_run: bool,
) -> Result<(), EngineError> {
    let owner = owner_hash(&installation.namespace, &installation.name);
    rewrite(cluster, record, &hidden.object, dry_run, |live| {
        let labels = &live.metadata.labels;
        let mut known = hidden.labels.iter();
        if hidden.labels.is_empty() || !known.all(|(label, value)| labels.get(label) == Some(value))
        {
            return None;
        }
        let kept = json!(hidden.labels).to_string();
        let mut patch = json!({"metadata": {
            "labels": {LABEL_SET_ASIDE: owner},
            "annotations": {ANNOTATION_SET_ASIDE: kept},
        }});
        for label in hidden.labels.keys() {
            patch["metadata"]["labels"][label] = Value::Null;
        }
        if let Some(key) = &hidden.data_key
            && let Some(data) = live.data.get(key)
        {
            patch["data"] = json!({key: null, format!("{HIDDEN_KEY}{key}"): data});
        }
        Some(patch)
    })
    .await
}

/// Restores records that were hidden, the newest first, so that their tool always finds what is installed.
pub(super) async fn restore(
    cluster: &Cluster,
    installation: &InstallationName,
    record: &FormerRecord,
) -> Result<(), EngineError> {
    let owner = owner_hash(&installation.namespace, &installation.name);
    for object in record.objects.iter().rev() {
        rewrite(cluster, record, object, false, |live| {
            let labels = &live.metadata.labels;
            labels.get(LABEL_SET_ASIDE).filter(|by| **by == owner)?;
            let kept = live.metadata.annotations.get(ANNOTATION_SET_ASIDE)?;
            let mut restored: BTreeMap<String, Option<String>> = entrance::from_str(kept).ok()?;
            restored.insert(LABEL_SET_ASIDE.to_owned(), None);
            let mut patch = json!({"metadata": {
                "labels": restored,
                "annotations": {ANNOTATION_SET_ASIDE: null},
            }});
            for (hidden, data) in &live.data {
                if let Some(key) = hidden.strip_prefix(HIDDEN_KEY) {
                    patch["data"][key] = json!(data);
                    patch["data"][hidden] = Value::Null;
                }
            }
            Some(patch)
        })
        .await?;
    }
    Ok(())
}

/// Deletes records that were set aside.
pub(super) async fn delete_all(
    cluster: &Cluster,
    installation: &InstallationName,
    record: &FormerRecord,
) -> Result<(), EngineError> {
    let owner = owner_hash(&installation.namespace, &installation.name);
    for object in &record.objects {
        let collection = collection(&object.kind, &record.namespace);
        let doomed = DeletionTarget {
            collection: &collection,
            name: &object.name,
            uid: &object.uid,
            judged: "",
            propagation: Propagation::Background,
        };
        let judge = |found: &LiveMetadata| {
            let is_ours = found.labels.get(LABEL_SET_ASIDE) == Some(&owner);
            (!is_ours).then_some(PruneObstacle::UNMARKED)
        };
        delete(cluster, doomed, judge).await?;
    }
    Ok(())
}

/// Reads one object of a record, and patches it with what `change` returns. An object that was deleted or recreated is left alone.
async fn rewrite(
    cluster: &Cluster,
    record: &FormerRecord,
    object: &FormerObject,
    dry_run: bool,
    change: impl Fn(&FormerContent) -> Option<Value>,
) -> Result<(), EngineError> {
    let collection = collection(&object.kind, &record.namespace);
    // Keys are only renamed in ConfigMaps; the content of Secrets is not needed, and large.
    let accept = match object.kind.as_str() {
        "Secret" => METADATA,
        _ => JSON,
    };
    let mut tries = 1;
    loop {
        let call = ApiCall::get(&collection, &object.name, accept);
        let live = match cluster.send::<FormerContent>(call).await {
            Ok(answer) => answer.object,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        if live.metadata.uid != object.uid {
            return Ok(());
        }
        let Some(mut patch) = change(&live) else {
            return Ok(());
        };
        patch["metadata"]["resourceVersion"] = json!(live.metadata.resource_version);
        let mut call = ApiCall::patch(&collection, &object.name, MERGE_PATCH, METADATA)
            .query("fieldManager", CLIENT)
            .body(patch.to_string().into_bytes());
        if dry_run {
            call = call.query("dryRun", "All");
        }
        match cluster.send::<serde::de::IgnoredAny>(call).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_conflict() && tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Returns the collection of records of this kind.
pub(super) fn collection(kind: &str, namespace: &str) -> Collection {
    let plural = match kind {
        "Secret" => "secrets",
        _ => "configmaps",
    };
    Collection::from_names("v1", kind, plural, Some(namespace))
}

#[cfg(test)]
pub(super) mod tests;
