//! Recreates an object that cannot be changed in place: a dry run of its creation, its deletion in the state that was read, a wait until it
//! no longer exists, and its creation.
//!
//! The inventory is right at every point: until the creation is answered, it holds the old object. If the operation is interrupted before
//! the creation, the next run finds no object and creates it; if after it, the next run finds our label and applies.
//!
//! Pods of a StatefulSet stay and are adopted by the new one if its selector is the same; otherwise they are deleted first, because the new
//! ones have the same names. Pods of all other kinds are deleted in the background: the new ones have other names and do not wait for them.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use addons_plan::Step;
use addons_plan::immutable::loses_claims;
use addons_plan::prune::PruneObstacle;
use common::api::names;
use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::KeptKind;

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::delete::{Deleted, DeletionTarget, Propagation, delete, wait_until_deleted};
use super::super::error::EngineError;
use super::super::meta::LiveMetadata;
use super::super::request::{ApiCall, JSON};
use super::{Applier, ApplyResponse, StepNotes, body};

/// Time reserved at the end of the operation for reporting objects that still exist.
const RESERVE: Duration = Duration::from_secs(1);

/// Returns until when an operation waits for a deletion before it continues.
pub(super) fn deletion_deadline(applier: &Applier<'_>) -> Instant {
    let left = applier.deadline.saturating_duration_since(Instant::now());
    applier.deadline - RESERVE.min(left / 2)
}

/// Deletes and creates the object of a step.
pub(super) async fn recreate(
    applier: &Applier<'_>,
    cluster: &Cluster,
    step: &Step,
) -> Result<ApplyResponse, EngineError> {
    let key = &step.target.key;
    let collection = Collection::from_target(&step.target);
    let conflict = |message: &str| EngineError::conflict(key.clone(), message);
    if let Some(kind) = KeptKind::from_key(key) {
        return Err(conflict(&format!("it is never recreated: {}", kind.loss())));
    }
    let call = ApiCall::get(&collection, &key.name, JSON);
    let live: Value = match cluster.send(call).await {
        Ok(answer) => answer.object,
        Err(error) if error.is_not_found() => {
            return applier
                .create(cluster, step, &mut StepNotes::default())
                .await;
        }
        Err(error) => return Err(error),
    };
    let label = live
        .get("metadata")
        .and_then(|metadata| metadata.get("labels")?.get(names::LABEL_OWNER));
    if label.and_then(Value::as_str) != Some(&applier.owner) {
        return Err(conflict(
            "it no longer has the label of this installation, and is not recreated: another client may have taken it over",
        ));
    }
    if loses_claims(&live, &step.object) {
        return Err(conflict(
            "it is never recreated: its claims would be deleted with it (persistentVolumeClaimRetentionPolicy)",
        ));
    }
    check_creation(cluster, &collection, step, &live).await?;
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str);
    let uid = text("/metadata/uid").unwrap_or_default();
    let doomed = DeletionTarget {
        collection: &collection,
        name: &key.name,
        uid,
        judged: text("/metadata/resourceVersion").unwrap_or_default(),
        propagation: propagation(step, &live),
    };
    let generation = live.pointer("/metadata/generation").and_then(Value::as_i64);
    let judge = |found: &LiveMetadata| {
        if found.labels.get(names::LABEL_OWNER) != Some(&applier.owner) {
            return Some(PruneObstacle::UNMARKED);
        }
        let is_same = found.generation.is_some() && found.generation == generation;
        (!is_same).then(|| PruneObstacle::Kept("another client changed it meanwhile".to_owned()))
    };
    if let Deleted::Left(obstacle) = delete(cluster, doomed, judge).await? {
        let why = obstacle.why();
        let message = format!("it is not recreated: {why}; run the command again");
        return Err(conflict(&message));
    }
    match wait_until_deleted(
        cluster,
        &collection,
        &key.name,
        uid,
        deletion_deadline(applier),
    )
    .await
    {
        Ok(None) => {}
        Ok(Some(finalizers)) => {
            let message = format!(
                "it was deleted to be recreated and {}; run the command again when it is gone",
                describe_remaining(&finalizers)
            );
            return Err(conflict(&message));
        }
        Err(error) => return Err(explain_lost(step, error)),
    }
    applier
        .create(cluster, step, &mut StepNotes::default())
        .await
        .map_err(|error| explain_lost(step, error))
}

/// Sends a dry run of the creation. A conflict is expected because the object still exists; any other error is found here, before anything
/// is deleted.
async fn check_creation(
    cluster: &Cluster,
    collection: &Collection,
    step: &Step,
    live: &Value,
) -> Result<(), EngineError> {
    let object = without_allocated(&step.target.key, &step.object, live);
    let call = ApiCall::create(collection, &step.target.key.name, JSON)
        .query("dryRun", "All")
        .body(body(&step.target, &object)?);
    match cluster.send::<Value>(call).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the wanted object without exclusive resources that the live one holds, because they are free once that is deleted (core/v1
/// ServiceSpec: node ports and cluster IPs are allocated even in a dry run).
fn without_allocated(key: &ObjectKey, wanted: &Value, live: &Value) -> Value {
    let mut object = wanted.clone();
    if (key.group.as_str(), key.kind.as_str()) != ("", "Service") {
        return object;
    }
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return object;
    };
    let held = live.get("spec").unwrap_or(&Value::Null);
    let is_held = |spec: &Map<String, Value>, name: &str| {
        let value = spec.get(name);
        value.is_some() && value == held.get(name)
    };
    let is_headless = held.get("clusterIP").and_then(Value::as_str) == Some("None");
    if !is_headless && (is_held(spec, "clusterIP") || is_held(spec, "clusterIPs")) {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    if is_held(spec, "healthCheckNodePort") {
        spec.remove("healthCheckNodePort");
    }
    let ports = |spec: &Value| -> Vec<Value> {
        let ports = spec.get("ports").and_then(Value::as_array).into_iter();
        let ports = ports.flatten().filter_map(|port| port.get("nodePort"));
        ports.cloned().collect()
    };
    let held = ports(held);
    let wanted = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in wanted.into_iter().flatten() {
        if let Some(port) = port.as_object_mut()
            && port.get("nodePort").is_some_and(|port| held.contains(port))
        {
            port.remove("nodePort");
        }
    }
    object
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

/// Describes why a deleted object still exists.
pub(super) fn describe_remaining(finalizers: &[String]) -> String {
    match finalizers {
        [] => "is still being deleted".to_owned(),
        finalizers => format!("is held by finalizer {}", finalizers.join(", ")),
    }
}

/// The error for an object that was deleted and not created again.
fn explain_lost(step: &Step, error: EngineError) -> EngineError {
    let code = error.code().unwrap_or_default();
    let message = format!(
        "it was deleted to be recreated, which failed: {}; the next run creates it",
        error.describe()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_live_object_holds_is_not_asked_for_twice() {
        let service = |spec: Value| json!({"kind": "Service", "spec": spec});
        let live = service(json!({
            "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "healthCheckNodePort": 30001,
            "ports": [{"port": 80, "nodePort": 30080}, {"port": 443, "nodePort": 30443}],
        }));
        let headless = service(json!({"clusterIP": "None", "clusterIPs": ["None"]}));
        for (kind, live, wanted, expected) in [
            (
                "Service",
                &live,
                json!({"clusterIP": "10.0.0.7", "healthCheckNodePort": 30001, "ports": [{"port": 8080, "nodePort": 30443}]}),
                json!({"ports": [{"port": 8080}]}),
            ),
            // What another object holds is refused before anything is deleted.
            (
                "Service",
                &live,
                json!({"clusterIP": "10.0.0.8", "ports": [{"port": 80, "nodePort": 30081}]}),
                json!({"clusterIP": "10.0.0.8", "ports": [{"port": 80, "nodePort": 30081}]}),
            ),
            (
                "Service",
                &headless,
                json!({"clusterIP": "None"}),
                json!({"clusterIP": "None"}),
            ),
            (
                "Till",
                &live,
                json!({"clusterIP": "10.0.0.7"}),
                json!({"clusterIP": "10.0.0.7"}),
            ),
        ] {
            let key = ObjectKey {
                kind: kind.to_owned(),
                ..ObjectKey::default()
            };
            let found = without_allocated(&key, &service(wanted), live);
            assert_eq!(found, service(expected));
        }
    }
}
