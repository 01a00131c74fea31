//! The marks of every object that people and tools make: one metadata-only LIST a kind.

use std::collections::BTreeSet;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};

use common::plan::found::Marked;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::snapshot::read_all;

/// Kinds that controllers make in large numbers, and kinds that no tool installs.
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

/// What was found.
#[derive(Debug, Default)]
pub struct Marks {
    /// The objects that no other object owns.
    pub objects: Vec<Marked>,
    /// Collections that could not be listed, and why.
    pub unreadable: Vec<(String, String)>,
}

/// Reads the marks of the cluster's objects.
///
/// # Errors
/// The server cannot be reached.
pub async fn read(cluster: &Cluster) -> Result<Marks, EngineError> {
    let kinds = cluster.kinds(&BTreeSet::new()).await?;
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
    let listed: Vec<_> = stream::iter(collections)
        .map(async |collection| {
            let listed = match read_all(cluster, &collection).await {
                Err(error) if error.is_of_reading() => Err(error.words()),
                listed => Ok(listed?.unwrap_or_default()),
            };
            Ok::<_, EngineError>((collection, listed))
        })
        .buffered(cluster.concurrency())
        .try_collect()
        .await?;
    let mut marks = Marks::default();
    for (collection, listed) in listed {
        let found = match listed {
            Ok(found) => found,
            Err(why) => {
                marks.unreadable.push((collection.to_string(), why));
                continue;
            }
        };
        let free = found.into_iter();
        let free = free.filter(|metadata| metadata.owner_references.is_empty());
        marks.objects.extend(free.map(|metadata| Marked {
            key: collection.key(&metadata),
            labels: metadata.labels,
            annotations: metadata.annotations,
        }));
    }
    Ok(marks)
}
