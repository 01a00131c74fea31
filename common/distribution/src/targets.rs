//! The clusters that catalogues are pushed to: those of namespaces with certain labels (semantics 6.1).

use std::sync::Arc;

use addons_engine::{Cluster, local, remote};
use addons_operation::{Context, OperationError};
use common::target::NamespaceCluster;

use crate::error::DistributionError;

/// A cluster, and the name by which it is reported.
pub struct PushTarget {
    /// The name of its namespace here, or of a kubeconfig context.
    pub name: String,
    /// The connection, over which no request was sent yet.
    pub cluster: Result<Arc<Cluster>, DistributionError>,
}

/// Returns the clusters of the namespaces that a label selector matches, by name.
///
/// # Errors
/// The namespaces cannot be listed, or none matches.
pub async fn select_targets(
    ctx: &Context,
    selector: &str,
) -> Result<Vec<PushTarget>, DistributionError> {
    let home = ctx.shared_home().await?;
    let names = local::list_selected(home, selector).await?;
    if names.is_empty() {
        let selector = selector.to_owned();
        return Err(DistributionError::NoTargets { selector });
    }
    let mut targets = Vec::new();
    for name in names {
        let cluster = connect(home, &name).await;
        targets.push(PushTarget { name, cluster });
    }
    Ok(targets)
}

async fn connect(home: &Arc<Cluster>, namespace: &str) -> Result<Arc<Cluster>, DistributionError> {
    match remote::read_standing(home, namespace)
        .await
        .map_err(OperationError::from)?
    {
        NamespaceCluster::ThisCluster => Ok(Arc::clone(home)),
        NamespaceCluster::NoCluster | NamespaceCluster::NoNamespace => {
            Err(DistributionError::NoCluster)
        }
        NamespaceCluster::OtherCluster(location) => {
            let cluster = remote::connect_alone(home, namespace, &location)
                .await
                .map_err(OperationError::from)?;
            Ok(Arc::new(cluster))
        }
    }
}
