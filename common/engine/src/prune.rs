//! Deletes the objects that a plan names: group after group, each with the precondition of its uid, and releases the fields
//! of objects that existed before us.

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream;
use serde_json::json;
use tokio::time::Instant;

use common::api::names;
use common::manifest::key::ObjectKey;
use common::plan::{Deletion, InstallationPlan, Target};
use common::readiness::{Readiness, Status};

use super::address::Collection;
use super::addressed;
use super::cluster::Cluster;
use super::delete::{self, Deleted, Propagation, delete};
use super::error::EngineError;
use super::event::Event;
use super::holder;
use super::meta::Partial;
use super::report::Failure;
use super::request::{APPLY_PATCH, Call, MERGE_PATCH, METADATA};
use super::snapshot::read_one;

/// What became of the deletions.
#[derive(Debug, Default)]
pub(super) struct Pruned {
    /// Deleted, by us or before.
    pub(super) deleted: Vec<ObjectKey>,
    /// No longer the object that was ours: it is forgotten.
    pub(super) foreign: Vec<ObjectKey>,
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
    groups: &[Vec<Deletion>],
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Pruned {
    let mut pruned = Pruned::default();
    for group in groups.iter().filter(|group| !group.is_empty()) {
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
        let held = delete_group(cluster, group, events, &mut pruned).await;
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
    events: &(dyn Fn(Event) + Send + Sync),
    pruned: &mut Pruned,
) -> Vec<(&'a Deletion, Vec<String>)> {
    let mut deletions = stream::iter(group)
        .map(async |deletion| {
            let target = &deletion.target;
            let collection = Collection::of(target);
            let (name, background) = (&target.key.name, Propagation::Background);
            let result = delete(cluster, &collection, name, &deletion.uid, background).await;
            (deletion, result)
        })
        .buffer_unordered(cluster.concurrency());
    let mut held = Vec::new();
    while let Some((deletion, result)) = deletions.next().await {
        let key = deletion.target.key.clone();
        match result {
            Ok(Deleted::Foreign) => pruned.foreign.push(key),
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
        status: Status::Terminating,
        message: format!("held by finalizer {}", finalizers.join(", ")),
    };
    events(Event::Waiting {
        key: key.clone(),
        readiness: readiness.clone(),
    });
    let collection = Collection::of(&deletion.target);
    let name = &key.name;
    match delete::until_gone(cluster, &collection, name, &deletion.uid, deadline).await {
        Ok(None) => None,
        Ok(Some(_)) => Some(Readiness {
            message: holder::reason(cluster, &collection, name, &finalizers).await,
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
            let result = release_one(cluster, target, uid, &manager).await;
            result
                .err()
                .map(|error| Failure::of(target.key.clone(), &error))
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
    let mut collection = Collection::of(target);
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
        Call::patch(at, name, APPLY_PATCH, METADATA)
            .query("fieldManager", manager)
            .query("force", "true")
            .body(empty.to_string().into_bytes())
    };
    let applied = addressed::send::<Partial>(cluster, &mut collection, name, apply).await;
    let error = match applied {
        Ok(_) => return Ok(()),
        Err(error) if error.is_not_found() || error.is_conflict() => return Ok(()),
        Err(error) => error,
    };
    if error.code() != Some(422) {
        return Err(error);
    }
    let marks = json!({"metadata": {
        "uid": uid,
        "labels": {names::LABEL_OWNER: null},
        "annotations": {names::ANNOTATION_INSTALLATION: null},
    }});
    let unmark = Call::patch(&collection, name, MERGE_PATCH, METADATA)
        .query("fieldManager", manager)
        .body(marks.to_string().into_bytes());
    match cluster.send::<Partial>(unmark).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}
