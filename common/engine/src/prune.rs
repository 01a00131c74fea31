//! Deletes the objects that a plan names, each in the state in which the plan checked it (semantics 13.7), and releases the fields of
//! preexisting objects.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use addons_plan::inventory::Inventory;
use addons_plan::prune::{KeptKind, PruneObstacle};
use addons_plan::readiness::{Readiness, ReadinessStatus};
use addons_plan::{Deletion, InstallationPlan, Target};
use common::api::names;

use super::address::Collection;
use super::addressed;
use super::apply::managed;
use super::cluster::Cluster;
use super::delete::{self, Deleted, DeletionTarget, Propagation, delete};
use super::error::EngineError;
use super::event::Event;
use super::holder;
use super::meta::{LiveMetadata, PartialObject};
use super::report::StepEnd;
use super::request::{APPLY_PATCH, ApiCall, FIRST_PAUSE, METADATA};
use super::silent;
use super::snapshot::{read_one, to_live_object};

/// How long a finalizer may hold an object before it is worth an event. The server itself holds each CRD for a moment.
const HOLD_PATIENCE: Duration = Duration::from_secs(3);

/// Deletes one object of a plan, unless an object of `kept` needs it: those stay although the plan deletes them.
pub(super) async fn perform(
    cluster: &Cluster,
    deletion: &Deletion,
    plan: &InstallationPlan,
    kept: &[Target],
    events: &(dyn Fn(Event) + Send + Sync),
) -> Result<StepEnd, EngineError> {
    let deleted = match needed(deletion, kept) {
        Some(obstacle) => Deleted::Left(obstacle),
        None => delete_one(cluster, deletion, &plan.union).await?,
    };
    let key = deletion.target.key.clone();
    let end = match deleted {
        Deleted::Left(obstacle) => {
            let message = format!("it {obstacle}");
            events(Event::Warning { key, message });
            return Ok(match obstacle {
                PruneObstacle::Foreign(_) => StepEnd::Forgotten,
                PruneObstacle::Kept(_) => StepEnd::Retained,
            });
        }
        Deleted::Gone => StepEnd::Deleted,
        Deleted::Held(finalizers) => StepEnd::Held(finalizers),
    };
    events(Event::Pruned { key });
    Ok(end)
}

/// Deletes one object if it still meets the plan's conditions. `recorded`: the inventory of the installation.
pub(super) async fn delete_one(
    cluster: &Cluster,
    deletion: &Deletion,
    recorded: &Inventory,
) -> Result<Deleted, EngineError> {
    let doomed = DeletionTarget {
        collection: &Collection::from_target(&deletion.target),
        name: &deletion.target.key.name,
        uid: &deletion.uid,
        judged: &deletion.resource_version,
        propagation: Propagation::Background,
    };
    let judge = |found: &LiveMetadata| {
        let labels = found.labels.clone();
        deletion.obstacle(&labels, &to_live_object(found.clone()), recorded)
    };
    match delete(cluster, doomed, judge).await {
        Ok(deleted) => Ok(deleted),
        Err(error) => Err(silent::explain_own_webhook(cluster, recorded, error).await),
    }
}

/// Returns why an object must stay: another object that would be deleted with it was kept after the plan was made.
fn needed(deletion: &Deletion, kept: &[Target]) -> Option<PruneObstacle> {
    let key = &deletion.target.key;
    let staying = kept.iter().find(|kept| kept.goes_with(key))?;
    Some(PruneObstacle::Kept(match KeptKind::from_key(key) {
        Some(KeptKind::Namespace) => format!("{} stays in it", staying.key),
        _ => format!("{} stays, and is of its kind", staying.key),
    }))
}

/// Waits until an object is deleted. Returns what holds it if it still exists at the deadline.
pub(super) async fn wait_until_deleted(
    cluster: &Cluster,
    deletion: &Deletion,
    finalizers: Vec<String>,
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Option<Readiness> {
    let key = &deletion.target.key;
    let readiness = Readiness {
        status: ReadinessStatus::Terminating,
        message: format!("held by finalizer {}", finalizers.join(", ")),
    };
    let collection = Collection::from_target(&deletion.target);
    let name = &key.name;
    let gone = delete::wait_until_deleted(cluster, &collection, name, &deletion.uid, deadline);
    let mut gone = std::pin::pin!(gone);
    let ended = match timeout(HOLD_PATIENCE, &mut gone).await {
        Ok(ended) => ended,
        Err(_) => {
            events(Event::Waiting {
                key: key.clone(),
                readiness: readiness.clone(),
            });
            gone.await
        }
    };
    match ended {
        Ok(None) => None,
        Ok(Some(_)) => Some(Readiness {
            message: holder::explain_holder(cluster, &collection, name, &finalizers).await,
            ..readiness
        }),
        Err(error) => Some(Readiness {
            message: format!("{}; {error}", readiness.message),
            ..readiness
        }),
    }
}

/// Releases the fields of a preexisting object.
pub(super) async fn release(
    cluster: &Cluster,
    target: &Target,
    plan: &InstallationPlan,
) -> Result<StepEnd, EngineError> {
    match release_one(cluster, target, plan).await {
        Err(error) => Err(silent::explain_own_webhook(cluster, &plan.union, error).await),
        Ok(()) => Ok(StepEnd::Forgotten),
    }
}

/// Applies an object without fields, which removes our marks and the fields that only we set. The uid keeps the server from creating the
/// object again. If the object would be invalid without our fields, only the marks are removed.
async fn release_one(
    cluster: &Cluster,
    target: &Target,
    plan: &InstallationPlan,
) -> Result<(), EngineError> {
    let manager = &names::field_manager(&plan.installation.namespace, &plan.installation.name);
    let collection = Collection::from_target(target);
    let name = &target.key.name;
    let item = plan.union.objects.get(&target.key);
    let uid = match item.map_or("", |item| item.object.uid.as_str()) {
        "" => match read_one(cluster, &collection, name).await? {
            Some(found) => found.uid,
            None => return Ok(()),
        },
        uid => uid.to_owned(),
    };
    let apply = |at: &Collection| {
        let mut empty = json!({
            "apiVersion": at.gvk.api_version(),
            "kind": target.key.kind,
            "metadata": {"name": name, "uid": uid},
        });
        if let Some(namespace) = &target.key.namespace {
            empty["metadata"]["namespace"] = json!(namespace);
        }
        ApiCall::patch(at, name, APPLY_PATCH, METADATA)
            .query("fieldManager", manager)
            .query("force", "true")
            .body(empty.to_string().into_bytes())
    };
    let send = || async {
        let mut collection = collection.clone();
        addressed::send::<PartialObject>(cluster, &mut collection, name, apply).await
    };
    let mut pause = FIRST_PAUSE;
    for tries in 1.. {
        match managed::with_healing(cluster, target, manager, send).await {
            Ok(_) => break,
            Err(error) if error.is_not_found() => break,
            Err(error) if error.code() == Some(422) => {
                return unmark(cluster, target, &uid, manager).await;
            }
            // The object was recreated, or other clients keep writing it.
            Err(error) if error.is_conflict() => {
                let found = read_one(cluster, &collection, name).await?;
                if found.is_none_or(|found| found.uid != uid) {
                    break;
                }
                if tries == managed::TRIES {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        sleep(pause).await;
        pause *= 2;
    }
    Ok(())
}

/// Removes our marks from an object, and nothing else.
async fn unmark(
    cluster: &Cluster,
    target: &Target,
    uid: &str,
    manager: &str,
) -> Result<(), EngineError> {
    let marks = [
        managed::label_pointer(names::LABEL_OWNER),
        managed::annotation_pointer(names::ANNOTATION_INSTALLATION),
    ];
    let unmarked = managed::rewrite_with(cluster, target, manager, |live| {
        let found = live.pointer("/metadata/uid").and_then(Value::as_str);
        let marks = marks.iter().filter(|mark| live.pointer(mark).is_some());
        let removed: Vec<Value> = marks
            .map(|mark| json!({"op": "remove", "path": mark}))
            .collect();
        (found == Some(uid) && !removed.is_empty()).then_some(removed)
    });
    match unmarked.await {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}
