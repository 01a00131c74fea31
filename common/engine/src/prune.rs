//! Deletes the objects that a plan names: group after group, each in the state in which it was judged, and releases the fields of objects
//! that existed before us.

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use addons_plan::inventory::Inventory;
use addons_plan::prune::{KeptKind, PruneObstacle};
use addons_plan::readiness::{Readiness, ReadinessStatus};
use addons_plan::{Deletion, InstallationPlan, Target};
use common::api::names;
use common::manifest::key::ObjectKey;

use super::address::Collection;
use super::addressed;
use super::apply::managed;
use super::cluster::Cluster;
use super::delete::{self, Deleted, DeletionTarget, Propagation, delete};
use super::error::EngineError;
use super::event::Event;
use super::holder;
use super::meta::{LiveMetadata, PartialObject};
use super::report::Failure;
use super::request::{APPLY_PATCH, ApiCall, FIRST_PAUSE, METADATA};
use super::silent;
use super::snapshot::{read_one, to_live_object};

/// What became of the deletions.
#[derive(Debug, Default)]
pub(super) struct Pruned {
    /// Deleted, by us or before.
    pub(super) deleted: Vec<ObjectKey>,
    /// No longer the object that was ours: it is forgotten.
    pub(super) foreign: Vec<ObjectKey>,
    /// Ours, and kept since the plan was made: it stays recorded.
    pub(super) kept: Vec<Target>,
    /// Refused.
    pub(super) failed: Vec<Failure>,
    /// Not tried.
    pub(super) skipped: Vec<(ObjectKey, String)>,
    /// Deleted, but a finalizer holds them.
    pub(super) held: Vec<(ObjectKey, Readiness)>,
}

/// Deletes group after group. A group begins when those objects of the one before that an add-on's finalizer holds are
/// gone: their controller may be in the next group. The last group is waited for, too: after the report of a deletion
/// the objects are really gone.
pub(super) async fn prune(
    cluster: &Cluster,
    plan: &InstallationPlan,
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Pruned {
    let mut pruned = Pruned::default();
    let groups = plan.prune.iter();
    for group in groups.filter(|group| !group.is_empty()) {
        let blocked = match (pruned.failed.first(), pruned.held.first()) {
            (Some(failure), _) => Some(format!("{} could not be deleted", failure.key)),
            (_, Some((key, _))) => Some(format!("{key} is still going")),
            _ if Instant::now() >= deadline => Some("timed out".to_owned()),
            _ => None,
        };
        if let Some(why) = blocked {
            let keys = group.iter().map(|deletion| deletion.target.key.clone());
            pruned.skipped.extend(keys.map(|key| (key, why.clone())));
            continue;
        }
        let held = delete_group(cluster, group, plan, events, &mut pruned).await;
        let waiting = held.into_iter().map(async |(deletion, finalizers)| {
            let key = deletion.target.key.clone();
            let held = until_gone(cluster, deletion, finalizers, deadline, events).await;
            (key, held)
        });
        for (key, held) in join_all(waiting).await {
            pruned.held.extend(held.map(|readiness| (key, readiness)));
        }
    }
    pruned
}

/// Deletes the objects of one group at the same time; returns those that finalizers hold.
async fn delete_group<'a>(
    cluster: &Cluster,
    group: &'a [Deletion],
    plan: &InstallationPlan,
    events: &(dyn Fn(Event) + Send + Sync),
    pruned: &mut Pruned,
) -> Vec<(&'a Deletion, Vec<String>)> {
    let mut doomed = Vec::new();
    for deletion in group {
        match needed(deletion, &pruned.kept) {
            Some(obstacle) => pruned.leave(deletion, obstacle, events),
            None => doomed.push(deletion),
        }
    }
    let mut deletions = stream::iter(doomed)
        .map(async |deletion| (deletion, delete_one(cluster, deletion, &plan.union).await))
        .buffer_unordered(cluster.concurrency());
    let mut held = Vec::new();
    while let Some((deletion, result)) = deletions.next().await {
        let key = deletion.target.key.clone();
        match result {
            Ok(Deleted::Left(obstacle)) => pruned.leave(deletion, obstacle, events),
            Ok(deleted) => {
                if let Deleted::Held(finalizers) = deleted {
                    held.push((deletion, finalizers));
                }
                events(Event::Pruned { key: key.clone() });
                pruned.deleted.push(key);
            }
            Err(error) => {
                let failure = Failure::of(key, &error);
                events(Event::failed(&failure, error.remedy()));
                pruned.failed.push(failure);
            }
        }
    }
    held
}

/// Deletes one object if it is still what the plan deletes. `recorded`: the inventory of the installation.
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

/// Why an object stays with one that was kept after the plan was made, and would be deleted with it.
fn needed(deletion: &Deletion, kept: &[Target]) -> Option<PruneObstacle> {
    let key = &deletion.target.key;
    let staying = kept.iter().find(|kept| kept.goes_with(key))?;
    Some(PruneObstacle::Kept(match KeptKind::from_key(key) {
        Some(KeptKind::Namespace) => format!("{} stays in it", staying.key),
        _ => format!("{} stays, and is of its kind", staying.key),
    }))
}

impl Pruned {
    /// Notes that an object is not deleted although the plan says so.
    fn leave(
        &mut self,
        deletion: &Deletion,
        obstacle: PruneObstacle,
        events: &(dyn Fn(Event) + Send + Sync),
    ) {
        let target = &deletion.target;
        events(Event::Warning {
            key: target.key.clone(),
            message: format!("it {obstacle}"),
        });
        match obstacle {
            PruneObstacle::Foreign(_) => self.foreign.push(target.key.clone()),
            PruneObstacle::Kept(_) => self.kept.push(target.clone()),
        }
    }
}

/// Waits until a deleted object is gone; returns what holds it where it is not at the deadline.
async fn until_gone(
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
    events(Event::Waiting {
        key: key.clone(),
        readiness: readiness.clone(),
    });
    let collection = Collection::from_target(&deletion.target);
    let name = &key.name;
    match delete::wait_until_deleted(cluster, &collection, name, &deletion.uid, deadline).await {
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

/// Releases the fields of the plan's objects that were there before us; returns what failed.
pub(super) async fn release(cluster: &Cluster, plan: &InstallationPlan) -> Vec<Failure> {
    let manager = names::field_manager(&plan.installation.namespace, &plan.installation.name);
    let releases = plan.release.iter().map(|target| {
        let item = plan.union.objects.get(&target.key);
        (target, item.map_or("", |item| item.object.uid.as_str()))
    });
    let released: Vec<_> = stream::iter(releases)
        .map(async |(target, uid)| {
            let error = release_one(cluster, target, uid, &manager).await.err()?;
            let error = silent::explain_own_webhook(cluster, &plan.union, error).await;
            Some(Failure::of(target.key.clone(), &error))
        })
        .buffer_unordered(cluster.concurrency())
        .collect()
        .await;
    released.into_iter().flatten().collect()
}

/// An apply without fields removes what only we set, and our marks. The uid keeps it from creating the object again. Where the
/// object would be invalid without our fields, only the marks are removed.
async fn release_one(
    cluster: &Cluster,
    target: &Target,
    uid: &str,
    manager: &str,
) -> Result<(), EngineError> {
    let collection = Collection::from_target(target);
    let name = &target.key.name;
    let uid = match uid {
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
            // It is another object now, or others write it all the time.
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

/// Takes our marks from an object, and nothing else.
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
