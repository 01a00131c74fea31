//! The nodes of the cluster: whether one runs pods, and their labels.

use std::collections::BTreeMap;

use serde::Deserialize;

use common::entrance::or_default;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::listing;
use super::snapshot::read_all;

#[derive(Deserialize)]
struct NodeObject {
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Default, Deserialize)]
struct NodeStatus {
    #[serde(default, deserialize_with = "or_default")]
    conditions: Vec<NodeCondition>,
}

#[derive(Default, Deserialize)]
struct NodeCondition {
    r#type: String,
    status: String,
}

/// Returns the labels of each node; `None` if nodes may not be read.
///
/// # Errors
/// Those of the requests.
pub async fn read_labels(
    cluster: &Cluster,
) -> Result<Option<Vec<BTreeMap<String, String>>>, EngineError> {
    let nodes = Collection::from_names("v1", "Node", "nodes", None);
    match read_all(cluster, &nodes).await {
        Ok(found) => Ok(found.map(|nodes| nodes.into_iter().map(|node| node.labels).collect())),
        Err(EngineError::Forbidden { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether any node is Ready; `None` if nodes may not be read.
///
/// # Errors
/// Those of the requests.
pub async fn is_any_ready(cluster: &Cluster) -> Result<Option<bool>, EngineError> {
    let nodes = Collection::from_names("v1", "Node", "nodes", None);
    match listing::list_all::<NodeObject>(cluster, &nodes, None).await {
        Ok(nodes) => {
            let mut conditions = nodes.iter().flat_map(|node| &node.status.conditions);
            Ok(Some(
                conditions.any(|one| one.r#type == "Ready" && one.status == "True"),
            ))
        }
        Err(EngineError::Forbidden { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
