//! Finds out whether the cluster has nodes that run pods.

use serde::Deserialize;

use common::entrance::or_default;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::listing;

#[derive(Deserialize)]
struct Node {
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default, deserialize_with = "or_default")]
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
struct Condition {
    r#type: String,
    status: String,
}

/// Returns whether any node is Ready; `None` if nodes may not be read.
///
/// # Errors
/// Those of the requests.
pub async fn is_one_ready(cluster: &Cluster) -> Result<Option<bool>, EngineError> {
    let nodes = Collection::known("v1", "Node", "nodes", None);
    match listing::all::<Node>(cluster, &nodes, None).await {
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
