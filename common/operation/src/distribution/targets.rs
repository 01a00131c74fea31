//! The clusters that catalogues are pushed to: those of namespaces with certain labels (semantics 6.1).

use std::sync::Arc;

use addons_engine::{Cluster, local, remote};
use common::target::Standing;

use super::DistributionError;
use crate::context::Context;
use crate::error::OperationError;

/// A cluster, and the name by which it is reported.
pub struct Target {
    /// The name of its namespace here, or of a kubeconfig context.
    pub name: String,
    /// The connection, over which no request was sent yet.
    pub cluster: Result<Arc<Cluster>, OperationError>,
}

/// Returns the clusters of the namespaces that a label selector matches, by name.
///
/// # Errors
/// The namespaces cannot be listed, or none matches.
pub async fn selected(ctx: &Context, selector: &str) -> Result<Vec<Target>, OperationError> {
    let home = ctx.shared_home().await?;
    let names = local::selected(home, selector).await?;
    if names.is_empty() {
        let selector = selector.to_owned();
        return Err(DistributionError::NoTargets { selector }.into());
    }
    let mut targets = Vec::new();
    for name in names {
        let cluster = one(home, &name).await;
        targets.push(Target { name, cluster });
    }
    Ok(targets)
}

async fn one(home: &Arc<Cluster>, namespace: &str) -> Result<Arc<Cluster>, OperationError> {
    match remote::standing(home, namespace).await? {
        Standing::Here => Ok(Arc::clone(home)),
        Standing::Nowhere | Standing::Absent => Err(DistributionError::NoCluster.into()),
        Standing::There(location) => {
            let cluster = remote::alone(home, namespace, &location).await?;
            Ok(Arc::new(cluster))
        }
    }
}
