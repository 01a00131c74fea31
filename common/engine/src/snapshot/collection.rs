//! Reads some objects of one kind and namespace. If the LIST is refused, each object is read by itself: an object that no webhook can
//! convert, or a missing right to list, says nothing about the others.

use std::collections::BTreeSet;

use common::manifest::kinds::KindTable;

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::super::meta::{LiveMetadata, PartialObject};
use super::super::request::{ApiCall, METADATA};
use super::{has_owner, read_all};

/// The objects that were read.
#[derive(Debug, Default)]
pub(super) struct CollectionObjects {
    /// Objects that exist.
    pub(super) live: Vec<LiveMetadata>,
    /// Names of objects that may exist, with the refusal.
    pub(super) unreadable: Vec<(Vec<String>, EngineError)>,
}

/// Reads the metadata of these objects, and of those of `owner` in the same LIST; `None` if their kind is not served.
pub(super) async fn read(
    cluster: &Cluster,
    kinds: &KindTable,
    collection: &Collection,
    names: &BTreeSet<&str>,
    owner: Option<&str>,
) -> Result<Option<CollectionObjects>, EngineError> {
    let mut found = CollectionObjects::default();
    if names.len() > 1 {
        match read_all(cluster, collection).await {
            Ok(listed) => {
                return Ok(listed.map(|mut listed| {
                    listed.retain(|metadata| {
                        names.contains(metadata.name.as_str()) || has_owner(metadata, owner)
                    });
                    found.live = listed;
                    found
                }));
            }
            // The server of the whole group does not answer.
            Err(error) if error.code() == Some(503) => {
                let names = names.iter().map(|name| (*name).to_owned());
                found.unreadable.push((names.collect(), error));
                return Ok(Some(found));
            }
            Err(error) if error.is_read_refusal() => {}
            Err(error) => return Err(error),
        }
    }
    for name in names {
        match read_single(cluster, kinds, collection, name).await {
            Ok(SingleRead::There(metadata)) => found.live.push(*metadata),
            Ok(SingleRead::Missing) => {}
            Ok(SingleRead::Unserved) => return Ok(None),
            Err(error) if error.is_read_refusal() => {
                found.unreadable.push((vec![(*name).to_owned()], error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(found))
}

/// The result of reading one object.
enum SingleRead {
    There(Box<LiveMetadata>),
    Missing,
    /// The kind is not served: the table of kinds may be outdated.
    Unserved,
}

/// Reads one object. Every served version is tried, because no conversion is needed in the storage version.
async fn read_single(
    cluster: &Cluster,
    kinds: &KindTable,
    collection: &Collection,
    name: &str,
) -> Result<SingleRead, EngineError> {
    let refused = match read_in_version(cluster, collection, name).await {
        Err(error) if error.is_conversion_failure() => error,
        answer => return answer,
    };
    for other in collection.in_other_versions(kinds) {
        if let Ok(single) = read_in_version(cluster, &other, name).await {
            return Ok(single);
        }
    }
    Err(refused)
}

async fn read_in_version(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
) -> Result<SingleRead, EngineError> {
    let call = ApiCall::get(collection, name, METADATA);
    match cluster.send::<PartialObject>(call).await {
        Ok(answer) => Ok(SingleRead::There(Box::new(answer.object.metadata))),
        Err(error) if error.is_unserved() => Ok(SingleRead::Unserved),
        Err(error) if error.is_not_found() => Ok(SingleRead::Missing),
        Err(error) => Err(error),
    }
}
