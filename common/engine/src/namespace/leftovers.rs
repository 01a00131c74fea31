//! Finds the objects that are left in a namespace after everything of ours was deleted.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use tokio::time::{Instant, sleep};

use common::manifest::key::Gvk;
use common::text::list_first;

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::meta::LiveMetadata;
use super::super::snapshot::read_all;

/// How long to wait for dependents of deleted objects: the garbage collector deletes them one generation after another.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);
/// Objects that every namespace has, and objects that controllers remove by themselves.
const HARMLESS: &[(&str, &str, Option<&str>)] = &[
    ("", "ConfigMap", Some("kube-root-ca.crt")),
    ("", "ServiceAccount", Some("default")),
    ("", "Event", None),
    ("events.k8s.io", "Event", None),
    ("", "Endpoints", None),
];

/// Returns the objects that stay in a namespace and are not deleted along with those whose uids are given.
pub(super) async fn find_staying(
    cluster: &Cluster,
    name: &str,
    deleted: &BTreeSet<String>,
    deadline: Instant,
) -> Result<Vec<String>, EngineError> {
    let patience = deadline.min(Instant::now() + PATIENCE);
    loop {
        let left = match list_objects(cluster, name).await {
            // A temporary error does not justify leaving the namespace behind.
            Err(error) if is_temporary(&error) && Instant::now() + PAUSE < patience => {
                sleep(PAUSE).await;
                continue;
            }
            found => found?,
        };
        let orphans = find_orphans(&left);
        let stays = without_deleted(left, deleted.clone());
        if stays.is_empty() || Instant::now() + PAUSE > patience {
            return Ok(object_names(stays));
        }
        let mut really = stays;
        really.retain(|left| !orphans.contains(&left.metadata.uid));
        let really = without_deleted(really, orphans);
        if !really.is_empty() {
            return Ok(object_names(really));
        }
        sleep(PAUSE).await;
    }
}

/// Returns whether a kind may soon be readable. The request itself already waited for a server or webhook that does not answer; a kind that
/// is not served leaves discovery after its CRD or APIService was deleted.
fn is_temporary(error: &EngineError) -> bool {
    !error.is_conversion_failure()
        && (error.is_unserved() || matches!(error.code(), Some(429 | 500 | 502 | 504)))
}

/// An object that is left in a namespace.
#[derive(Clone, Debug)]
struct LeftoverObject {
    object: String,
    metadata: LiveMetadata,
}

/// Returns the objects that stay: neither being deleted nor owned by a deleted object.
fn without_deleted(
    mut left: Vec<LeftoverObject>,
    mut gone: BTreeSet<String>,
) -> Vec<LeftoverObject> {
    loop {
        let before = left.len();
        left.retain(|leftover| {
            let metadata = &leftover.metadata;
            let mut owners = metadata.owner_references.iter();
            let goes = metadata.deletion_timestamp.is_some()
                || owners.any(|owner| gone.contains(&owner.uid));
            if goes {
                gone.insert(metadata.uid.clone());
            }
            !goes
        });
        if left.len() == before {
            return left;
        }
    }
}

/// Returns the uids of objects none of whose owners exists: the owners were deleted between our requests, and the garbage collector deletes
/// these objects next.
fn find_orphans(left: &[LeftoverObject]) -> BTreeSet<String> {
    let there: BTreeSet<&str> = left.iter().map(|left| left.metadata.uid.as_str()).collect();
    let orphans = left.iter().filter(|leftover| {
        let owners = &leftover.metadata.owner_references;
        !owners.is_empty()
            && !owners
                .iter()
                .any(|owner| there.contains(owner.uid.as_str()))
    });
    orphans.map(|left| left.metadata.uid.clone()).collect()
}

fn object_names(left: Vec<LeftoverObject>) -> Vec<String> {
    let objects: BTreeSet<String> = left.into_iter().map(|left| left.object).collect();
    objects.into_iter().collect()
}

/// Describes objects that stay: `shop/Secret a, shop/Till b and 3 more are in it`.
pub(super) fn describe_staying(foreign: &[String]) -> String {
    const NAMED: usize = 5;
    let are = if foreign.len() == 1 { "is" } else { "are" };
    format!("{} {are} in it", list_first(foreign, NAMED))
}

/// Returns the objects in a namespace, except those that every namespace has, with one metadata LIST for every namespaced kind. Fails if an
/// API server does not say what it serves, because it may have objects there.
async fn list_objects(cluster: &Cluster, name: &str) -> Result<Vec<LeftoverObject>, EngineError> {
    // A kind that was added after the table was cached could hide objects of others.
    let kinds = cluster.kinds_now().await?;
    if let Some(group) = kinds.silent_groups().next() {
        return Err(EngineError::Unserved {
            what: format!("API group {group}"),
            message: "its server does not answer, and may have objects in it".to_owned(),
        });
    }
    let collections: Vec<Collection> = kinds
        .iter()
        .filter(|(_, info)| info.namespaced && info.writable)
        .map(|(gvk, info)| Collection::new(gvk, info, Some(name)))
        .filter(|collection| !is_harmless(&collection.gvk, None))
        .collect();
    let found: Vec<Result<Vec<LeftoverObject>, EngineError>> = stream::iter(collections)
        .map(async |collection| list_in_collection(cluster, &collection).await)
        .buffer_unordered(cluster.concurrency())
        .collect()
        .await;
    let found: Result<Vec<Vec<LeftoverObject>>, EngineError> = found.into_iter().collect();
    Ok(found?.into_iter().flatten().collect())
}

async fn list_in_collection(
    cluster: &Cluster,
    collection: &Collection,
) -> Result<Vec<LeftoverObject>, EngineError> {
    let found = read_all(cluster, collection).await?;
    let found = found.ok_or_else(|| collection.unserved_error())?;
    Ok(found
        .into_iter()
        .filter(|metadata| !is_harmless(&collection.gvk, Some(&metadata.name)))
        .map(|metadata| LeftoverObject {
            object: collection.describe_object(&metadata.name),
            metadata,
        })
        .collect())
}

fn is_harmless(gvk: &Gvk, name: Option<&str>) -> bool {
    HARMLESS
        .iter()
        .any(|(group, kind, only)| *group == gvk.group && *kind == gvk.kind && *only == name)
}

#[cfg(test)]
mod tests;
