//! Reads the marks that tools leave on objects, with one metadata-only LIST per kind.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};

use addons_plan::found::MarkedObject;
use addons_plan::snapshot::LiveObject;
use common::api::names::LABEL_OWNER;
use common::manifest::key::ObjectKey;

use super::address::Collection;
use super::addressed;
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::LiveMetadata;
use super::snapshot::to_live_object;

/// Kinds that controllers create in large numbers, and kinds that no tool installs.
const LEFT_OUT: [(&str, &str); 9] = [
    ("", "Pod"),
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("", "Node"),
    ("apps", "ReplicaSet"),
    ("apps", "ControllerRevision"),
    ("coordination.k8s.io", "Lease"),
];

/// The marks of objects.
#[derive(Debug, Default)]
pub struct ObjectMarks {
    /// The objects without an owner reference.
    pub objects: Vec<MarkedObject>,
    /// Collections that could not be listed, and why.
    pub unreadable: Vec<(String, String)>,
}

/// Reads the marks of the objects in a cluster.
///
/// # Errors
/// The server cannot be reached.
pub async fn read(cluster: &Cluster) -> Result<ObjectMarks, EngineError> {
    let mut marks = ObjectMarks::default();
    for (collection, listed) in list_collections(cluster, &[]).await? {
        let found = match listed {
            Ok(found) => found,
            Err(why) => {
                marks.unreadable.push((collection.to_string(), why));
                continue;
            }
        };
        let free = found.into_iter();
        let free = free.filter(|metadata| metadata.owner_references.is_empty());
        marks.objects.extend(free.map(|metadata| MarkedObject {
            key: collection.key(&metadata),
            labels: metadata.labels,
            annotations: metadata.annotations,
        }));
    }
    Ok(marks)
}

/// The objects with one value of the owner label.
#[derive(Debug, Default)]
pub struct LabelledObjects {
    /// The objects by key.
    pub objects: BTreeMap<ObjectKey, LiveObject>,
    /// Collections that could not be listed, and why.
    pub unreadable: Vec<(String, String)>,
}

/// Reads the objects with one value of the owner label.
///
/// # Errors
/// The server cannot be reached.
pub async fn read_owned(cluster: &Cluster, owner: &str) -> Result<LabelledObjects, EngineError> {
    let selector = format!("{LABEL_OWNER}={owner}");
    let mut owned = LabelledObjects::default();
    for (collection, listed) in list_collections(cluster, &[("labelSelector", &selector)]).await? {
        match listed {
            Ok(found) => owned.objects.extend(
                found
                    .into_iter()
                    .map(|metadata| (collection.key(&metadata), to_live_object(metadata))),
            ),
            Err(why) => owned.unreadable.push((collection.to_string(), why)),
        }
    }
    Ok(owned)
}

/// A collection with its objects, or why it could not be listed.
type ListedCollection = (Collection, Result<Vec<LiveMetadata>, String>);

/// Sends one metadata-only LIST per kind.
async fn list_collections(
    cluster: &Cluster,
    selectors: &[(&'static str, &str)],
) -> Result<Vec<ListedCollection>, EngineError> {
    // A kind that is newer than the cached table could hide objects.
    let kinds = cluster.kinds_now().await?;
    let served: BTreeSet<(String, String)> = kinds
        .iter()
        .filter(|(_, info)| info.writable)
        .map(|(gvk, _)| (gvk.group, gvk.kind))
        .filter(|(group, kind)| !LEFT_OUT.contains(&(group.as_str(), kind.as_str())))
        .collect();
    let collections = served.iter().filter_map(|(group, kind)| {
        let (gvk, info) = kinds.preferred(group, kind)?;
        Some(Collection::new(gvk, info, None))
    });
    let collections: Vec<Collection> = collections.collect();
    stream::iter(collections)
        .map(async |collection| {
            let listed = match addressed::list_metadata(cluster, &collection, selectors).await {
                Err(error) if error.is_read_refusal() || error.is_unserved() => {
                    Err(error.describe())
                }
                listed => Ok(listed?),
            };
            Ok((collection, listed))
        })
        .buffered(cluster.concurrency())
        .try_collect()
        .await
}
