//! Recreates an object that cannot be changed in place: a dry run of its creation, deletion in the state in which it was read, waiting
//! until it is gone, creation.
//!
//! The inventory is right at every point: until the creation is answered it holds the old object. Interrupted before it, the
//! next run finds none and creates it; interrupted after it, the next run finds our label and applies.
//!
//! Pods: those of a StatefulSet stay and are adopted by the new one, where its selector is the same; otherwise they are
//! deleted first, because the new ones have the same names. Pods of everything else are deleted in the background: the new
//! ones have other names and do not wait for them.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use common::api::names;
use common::manifest::kinds::traits::KeptKind;
use common::plan::Step;
use common::plan::immutable::loses_claims;
use common::plan::prune::Obstacle;

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::delete::{Deleted, Doomed, Propagation, delete, until_gone};
use super::super::error::EngineError;
use super::super::meta::Metadata;
use super::super::request::{Call, JSON};
use super::{Applied, Applier, Notes, body};

/// Time of the operation that is kept for reporting what is not gone.
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
        key: Box::new(key.clone()),
        message: message.to_owned(),
        recorded: None,
        remedy: None,
    };
    if let Some(kind) = KeptKind::of(key) {
        return Err(conflict(&format!("it is never recreated: {}", kind.loss())));
    }
    let call = Call::get(&collection, &key.name, JSON);
    let live: Value = match cluster.send(call).await {
        Ok(answer) => answer.object,
        Err(error) if error.is_not_found() => {
            return applier.create(cluster, step, &mut Notes::default()).await;
        }
        Err(error) => return Err(error),
    };
    let label = live
        .get("metadata")
        .and_then(|metadata| metadata.get("labels")?.get(names::LABEL_OWNER));
    if label.and_then(Value::as_str) != Some(&applier.owner) {
        return Err(conflict(
            "it no longer has the label of this installation and is not recreated; delete it by hand",
        ));
    }
    if loses_claims(&live, &step.object) {
        return Err(conflict(
            "it is never recreated: its claims would be deleted with it (persistentVolumeClaimRetentionPolicy)",
        ));
    }
    check_creation(cluster, &collection, step).await?;
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str);
    let uid = text("/metadata/uid").unwrap_or_default();
    let doomed = Doomed {
        collection: &collection,
        name: &key.name,
        uid,
        judged: text("/metadata/resourceVersion").unwrap_or_default(),
        propagation: propagation(step, &live),
    };
    let generation = live.pointer("/metadata/generation").and_then(Value::as_i64);
    let judge = |found: &Metadata| {
        if found.labels.get(names::LABEL_OWNER) != Some(&applier.owner) {
            return Some(Obstacle::UNMARKED);
        }
        let is_same = found.generation.is_some() && found.generation == generation;
        (!is_same).then(|| Obstacle::Kept("another client changed it meanwhile".to_owned()))
    };
    if let Deleted::Left(obstacle) = delete(cluster, doomed, judge).await? {
        let why = obstacle.why();
        let message = format!("it is not recreated: {why}; run the command again");
        return Err(conflict(&message));
    }
    let left = applier.deadline.saturating_duration_since(Instant::now());
    let bound = applier.deadline - RESERVE.min(left / 2);
    match until_gone(cluster, &collection, &key.name, uid, bound).await {
        Ok(None) => {}
        Ok(Some(finalizers)) => return Err(conflict(&still_there(&finalizers))),
        Err(error) => return Err(lost(step, error)),
    }
    applier
        .create(cluster, step, &mut Notes::default())
        .await
        .map_err(|error| lost(step, error))
}

/// A dry run of its creation. It fails with a conflict because the object still exists; any other error is found here, before
/// anything is deleted.
async fn check_creation(
    cluster: &Cluster,
    collection: &Collection,
    step: &Step,
) -> Result<(), EngineError> {
    let call = Call::create(collection, &step.target.key.name, JSON)
        .query("dryRun", "All")
        .body(body(&step.target, &step.object)?);
    match cluster.send::<Value>(call).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}

fn propagation(step: &Step, live: &Value) -> Propagation {
    let key = &step.target.key;
    let selector = |object: &Value| object.pointer("/spec/selector").cloned();
    match (key.group.as_str(), key.kind.as_str()) {
        ("apps", "StatefulSet") if selector(live) == selector(&step.object) => Propagation::Orphan,
        ("apps", "StatefulSet") => Propagation::Foreground,
        _ => Propagation::Background,
    }
}

fn still_there(finalizers: &[String]) -> String {
    let why = match finalizers {
        [] => "is still being deleted".to_owned(),
        finalizers => format!("is held by finalizer {}", finalizers.join(", ")),
    };
    format!("it was deleted to be recreated and {why}; run the command again when it is gone")
}

/// The object is deleted and was not created again.
fn lost(step: &Step, error: EngineError) -> EngineError {
    let code = error.code().unwrap_or_default();
    let message = format!(
        "it was deleted to be recreated, which failed: {}; the next run creates it",
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
