//! The namespaces of records: the system namespace, which is created if missing, and those with a label that says that they stand for this
//! cluster (semantics 6.1).

use std::collections::{BTreeMap, BTreeSet};

use common::api::names::{
    ANNOTATION_CLUSTER_DELETING, CLUSTER_LOCAL, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET,
    LABEL_NAMESPACE_NAME, MARKED, is_reserved,
};
use serde_json::json;

use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::{LiveMetadata, PartialObject};
use super::namespace::post;
use super::request::{ApiCall, METADATA};
use super::snapshot::{namespace_collection, read_all, read_one, read_selected};

/// Returns the namespaces that stand for this cluster, with one LIST.
///
/// # Errors
/// Those of the requests.
pub async fn list_namespaces(cluster: &Cluster) -> Result<BTreeSet<String>, EngineError> {
    let selector = format!("{LABEL_CLUSTER}={CLUSTER_LOCAL}");
    let mut found = list_selected(cluster, &selector).await?;
    found.retain(|namespace| !is_reserved(namespace));
    Ok(found)
}

/// Returns the namespaces whose labels match a selector, with one LIST.
///
/// # Errors
/// Those of the request, including that for a malformed selector.
pub async fn list_selected(
    cluster: &Cluster,
    selector: &str,
) -> Result<BTreeSet<String>, EngineError> {
    let selectors = [("labelSelector", selector)];
    let found = read_selected(cluster, &namespace_collection(), &selectors).await?;
    Ok(found.into_iter().flatten().map(|one| one.name).collect())
}

/// Returns the namespaces whose label names the kubeconfig Secret of another cluster, with one LIST.
///
/// # Errors
/// Those of the requests.
pub async fn list_of_other_clusters(cluster: &Cluster) -> Result<BTreeSet<String>, EngineError> {
    let mut found = list_selected(cluster, LABEL_KUBECONFIG_SECRET).await?;
    found.retain(|namespace| !is_reserved(namespace));
    Ok(found)
}

/// Creates a namespace for records if it does not exist. It is read first, so an existing one needs no right to create.
///
/// # Errors
/// Those of the requests.
pub async fn ensure(cluster: &Cluster, name: &str) -> Result<(), EngineError> {
    if read_one(cluster, &namespace_collection(), name)
        .await?
        .is_some()
    {
        return Ok(());
    }
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    post(cluster, name, &object).await.map(drop)
}

/// Reads the labels of a namespace with our own rights, with one GET. For a missing namespace, returns the label with its name, which it
/// gets when created.
///
/// # Errors
/// Those of the request.
pub async fn read_labels(
    cluster: &Cluster,
    namespace: &str,
) -> Result<BTreeMap<String, String>, EngineError> {
    let call = ApiCall::get(&namespace_collection(), namespace, METADATA).with_own_rights();
    match cluster.send::<PartialObject>(call).await {
        Ok(answer) => Ok(answer.object.metadata.labels),
        Err(error) if error.is_not_found() => {
            let name = (LABEL_NAMESPACE_NAME.to_owned(), namespace.to_owned());
            Ok(BTreeMap::from([name]))
        }
        Err(error) => Err(error),
    }
}

/// Reads the annotations of a namespace with one GET; empty if it does not exist or may not be read.
///
/// # Errors
/// Those of the request.
pub async fn read_annotations(
    cluster: &Cluster,
    namespace: &str,
) -> Result<BTreeMap<String, String>, EngineError> {
    match read_one(cluster, &namespace_collection(), namespace).await {
        Ok(found) => Ok(found.map(|found| found.annotations).unwrap_or_default()),
        Err(EngineError::Forbidden { .. }) => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

/// Returns the namespaces that stand for no cluster by label, neither this one nor another, the system namespace included, with one LIST.
///
/// # Errors
/// Those of the request.
pub async fn list_of_no_cluster(cluster: &Cluster) -> Result<BTreeSet<String>, EngineError> {
    let found = read_all(cluster, &namespace_collection()).await?;
    let for_other = |metadata: &LiveMetadata| {
        metadata.labels.contains_key(LABEL_KUBECONFIG_SECRET) && !is_reserved(&metadata.name)
    };
    let found = found.unwrap_or_default().into_iter();
    let of_none =
        found.filter(|metadata| !stands_for_this_cluster(metadata) && !for_other(metadata));
    Ok(of_none.map(|metadata| metadata.name).collect())
}

/// Returns whether a namespace is given up: it does not exist, is being deleted, or is marked as one whose cluster is being deleted
/// (semantics 14.1). Sends one GET.
///
/// # Errors
/// Those of the request.
pub async fn is_given_up(cluster: &Cluster, namespace: &str) -> Result<bool, EngineError> {
    let found = read_one(cluster, &namespace_collection(), namespace).await?;
    Ok(found.is_none_or(|found| {
        let mark = found.annotations.get(ANNOTATION_CLUSTER_DELETING);
        found.deletion_timestamp.is_some() || mark.is_some_and(|mark| mark == MARKED)
    }))
}

/// Returns whether the label of a namespace says that it stands for this cluster.
pub(super) fn stands_for_this_cluster(metadata: &LiveMetadata) -> bool {
    let label = metadata.labels.get(LABEL_CLUSTER).map(String::as_str);
    label == Some(CLUSTER_LOCAL) && !is_reserved(&metadata.name)
}
