//! Which namespaces stand for this cluster besides the system namespace: those with a label that says so (semantics 6).

use std::collections::BTreeSet;

use common::api::names::{CLUSTER_LOCAL, LABEL_CLUSTER};

use super::cluster::Cluster;
use super::error::EngineError;
use super::listing;
use super::meta::Partial;
use super::snapshot::{namespace_collection, read_one};

/// All of them: one LIST.
///
/// # Errors
/// Those of the requests.
pub async fn namespaces(cluster: &Cluster) -> Result<BTreeSet<String>, EngineError> {
    let selector = format!("{LABEL_CLUSTER}={CLUSTER_LOCAL}");
    let found: Vec<Partial> =
        listing::all(cluster, &namespace_collection(), Some(&selector)).await?;
    Ok(found.into_iter().map(|one| one.metadata.name).collect())
}

/// Whether this one does: one GET.
///
/// # Errors
/// Those of the request.
pub async fn is_local(cluster: &Cluster, namespace: &str) -> Result<bool, EngineError> {
    let found = read_one(cluster, &namespace_collection(), namespace).await?;
    Ok(found.is_some_and(|metadata| {
        metadata.labels.get(LABEL_CLUSTER).map(String::as_str) == Some(CLUSTER_LOCAL)
    }))
}
