//! Makes an object anew that cannot be changed in place: asked whether it could be made, deleted by its uid, waited for until
//! it is gone, created.
//!
//! The inventory is right at every point: until the creation is answered it holds the old object. Cut off before, the next
//! run finds none and creates it; cut off behind it, the next run finds our label and applies.
//!
//! Pods: those of a StatefulSet stay and are taken over by the new one, where its selector is the same; otherwise they have
//! to go first, because the new ones have their names. Those of everything else go in the background: the new ones have
//! other names and do not wait for them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::api::names;
use crate::plan::{Step, recreate};

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::request::{Call, JSON};
use super::super::watch::{Seen, follow};
use super::{Applied, Applier, body};

/// Left of the operation for saying what is not gone.
const RESERVE: Duration = Duration::from_secs(1);

/// Deletes and creates the object of a step.
pub(super) async fn recreate(
    applier: &Applier,
    cluster: &Cluster,
    step: &Step,
) -> Result<Applied, EngineError> {
    let key = &step.target.key;
    let collection = Collection::of(&step.target);
    let conflict = |message: &str| EngineError::Conflict {
        key: key.clone(),
        message: message.to_owned(),
    };
    if let Some(why) = recreate::kept(key) {
        return Err(conflict(&format!("it is never recreated: {why}")));
    }
    let call = Call::get(&collection, &key.name, JSON);
    let live: Value = match cluster.send(call).await {
        Ok(answer) => answer.object,
        Err(error) if error.is_not_found() => return applier.create(cluster, step).await,
        Err(error) => return Err(error),
    };
    let label = live
        .get("metadata")
        .and_then(|metadata| metadata.get("labels")?.get(names::LABEL_OWNER));
    if label.and_then(Value::as_str) != Some(&applier.owner) {
        return Err(conflict(
            "it has no longer the label of this installation and is not recreated; delete it by hand",
        ));
    }
    could_be_made(cluster, &collection, step).await?;
    delete(cluster, &collection, step, &live).await?;
    until_gone(applier, cluster, &collection, step, &live).await?;
    applier
        .create(cluster, step)
        .await
        .map_err(|error| lost(step, error))
}

/// A dry run of its creation, which ends at the object that is still there: what is wrong beside the fields that never
/// change is found before anything is deleted.
async fn could_be_made(
    cluster: &Cluster,
    collection: &Collection,
    step: &Step,
) -> Result<(), EngineError> {
    let call = Call::create(collection, &step.target.key.name, JSON)
        .query("dryRun", "All")
        .body(body(step, &step.object)?);
    match cluster.send::<Value>(call).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}

async fn delete(
    cluster: &Cluster,
    collection: &Collection,
    step: &Step,
    live: &Value,
) -> Result<(), EngineError> {
    let key = &step.target.key;
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid(live)},
        "propagationPolicy": propagation(step, live),
    });
    let call = Call::delete(collection, &key.name).body(body(step, &options)?);
    match cluster.send::<Value>(call).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) if error.is_conflict() => Err(EngineError::Conflict {
            key: key.clone(),
            message: "it was made again by somebody else; run the command again".to_owned(),
        }),
        Err(error) => Err(error),
    }
}

fn propagation(step: &Step, live: &Value) -> &'static str {
    let key = &step.target.key;
    let selector = |object: &Value| object.pointer("/spec/selector").cloned();
    match (key.group.as_str(), key.kind.as_str()) {
        ("apps", "StatefulSet") if selector(live) == selector(&step.object) => "Orphan",
        ("apps", "StatefulSet") => "Foreground",
        _ => "Background",
    }
}

/// Waits until the deleted object is gone; what holds it where it is not in time.
async fn until_gone(
    applier: &Applier,
    cluster: &Cluster,
    collection: &Collection,
    step: &Step,
    live: &Value,
) -> Result<(), EngineError> {
    let mut finalizers = Vec::new();
    let is_it = |object: &Value| uid(object) == uid(live);
    let mut held_by = |object: &Value| {
        finalizers = object
            .pointer("/metadata/finalizers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|finalizer| finalizer.as_str().map(str::to_owned))
            .collect();
    };
    let gone = follow(
        cluster,
        collection,
        Some(&step.target.key.name),
        |seen| match seen {
            Seen::Listed(objects) => match objects.iter().find(|object| is_it(object)) {
                Some(object) => {
                    held_by(object);
                    false
                }
                None => true,
            },
            Seen::Changed(object) => {
                held_by(&object);
                !is_it(&object)
            }
            Seen::Deleted(object) => is_it(&object),
            Seen::Lost(_) => false,
        },
    );
    let left = applier.deadline.saturating_duration_since(Instant::now());
    let bound = applier.deadline - RESERVE.min(left / 2);
    match timeout_at(bound, gone).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(lost(step, error)),
        Err(_) => Err(EngineError::Conflict {
            key: step.target.key.clone(),
            message: if finalizers.is_empty() {
                "it was deleted to be made anew and is still going; run the command again when it is gone".to_owned()
            } else {
                format!(
                    "it was deleted to be made anew and is held by finalizer {}; run the command again when it is gone",
                    finalizers.join(", ")
                )
            },
        }),
    }
}

/// The object is deleted, and not there again.
fn lost(step: &Step, error: EngineError) -> EngineError {
    let code = error.code().unwrap_or_default();
    let message = format!(
        "it was deleted to be made anew, which failed: {}; the next run creates it",
        error.words()
    );
    match error {
        EngineError::Denied { object, .. } => EngineError::Denied { object, message },
        _ => EngineError::Api {
            what: step.target.key.to_string(),
            message,
            code,
        },
    }
}

fn uid(object: &Value) -> &str {
    let uid = object.pointer("/metadata/uid");
    uid.and_then(Value::as_str).unwrap_or_default()
}
