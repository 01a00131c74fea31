//! Writes an annotation of a namespace in which another tool keeps its records, and marks nodes for that tool (semantics 11.3).

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use addons_plan::closing::AnnotationChange;
use common::api::names;
use common::values::path;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::{LiveMetadata, PartialObject};
use super::request::{ApiCall, JSON_PATCH, MERGE_PATCH, METADATA};
use super::snapshot::{namespace_collection, read_one};

/// How often to retry a namespace that other clients write meanwhile: every add-on of a command writes its own key.
const TRIES: usize = 32;

/// Marks the nodes, then writes the annotation.
pub(super) async fn write(cluster: &Cluster, change: &AnnotationChange) -> Result<(), EngineError> {
    let marked = json!({"metadata": {"annotations": {&change.node_mark: ""}}}).to_string();
    stream::iter(&change.nodes)
        .map(async |node| {
            let call = ApiCall::patch(&node_collection(), node, MERGE_PATCH, METADATA)
                .query("fieldManager", names::CLIENT)
                .body(marked.clone().into_bytes());
            match cluster.send::<PartialObject>(call).await {
                // The node was replaced meanwhile.
                Err(error) if error.is_not_found() => Ok(()),
                other => other.map(drop),
            }
        })
        .buffer_unordered(cluster.concurrency())
        .try_collect::<()>()
        .await?;
    annotate(cluster, change).await
}

/// Writes one key, only if it still has the value that was read: the other tool may run on every control plane node, and the second of two
/// writers must see the first. Other keys may change meanwhile, such as those of other add-ons of the command.
async fn annotate(cluster: &Cluster, change: &AnnotationChange) -> Result<(), EngineError> {
    let collection = namespace_collection();
    for _ in 0..TRIES {
        let found = read_one(cluster, &collection, &change.namespace).await?;
        let Some(live) = found else {
            // The annotation was deleted with its namespace. One that has to be set needs the namespace.
            return match change.after {
                None => Ok(()),
                Some(_) => Err(conflict(
                    change,
                    "the namespace does not exist; create it first",
                )),
            };
        };
        let now = live.annotations.get(&change.key);
        if now == change.after.as_ref() {
            return Ok(());
        }
        if now != change.before.as_ref() {
            break;
        }
        let patch = patch(change, &live).to_string();
        let call = ApiCall::patch(&collection, &change.namespace, JSON_PATCH, METADATA)
            .query("fieldManager", names::CLIENT)
            .body(patch.into_bytes());
        match cluster.send::<PartialObject>(call).await {
            Ok(_) => return Ok(()),
            // 422: the test failed.
            Err(error) if error.is_conflict() || error.code() == Some(422) => {}
            Err(error) => return Err(error),
        }
    }
    Err(conflict(
        change,
        "another tool has changed it since it was read; run the command again",
    ))
}

/// Returns the JSON patch of one key. A test guards a key that exists; the resourceVersion guards one that does not.
fn patch(change: &AnnotationChange, live: &LiveMetadata) -> Value {
    let path = format!("/metadata/annotations/{}", path::escape_key(&change.key));
    let guard = match &change.before {
        Some(before) => json!({"op": "test", "path": path, "value": before}),
        None => {
            let version = &live.resource_version;
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version})
        }
    };
    let change = match &change.after {
        Some(after) if live.annotations.is_empty() => {
            json!({"op": "add", "path": "/metadata/annotations", "value": {&change.key: after}})
        }
        Some(after) => json!({"op": "add", "path": path, "value": after}),
        None => json!({"op": "remove", "path": path}),
    };
    json!([guard, change])
}

fn conflict(change: &AnnotationChange, what: &str) -> EngineError {
    EngineError::conflict(
        super::namespace::key(&change.namespace),
        format!("annotation {}: {what}", change.key),
    )
}

pub(super) fn node_collection() -> Collection {
    Collection::from_names("v1", "Node", "nodes", None)
}

#[cfg(test)]
mod tests;
