//! The clusters that catalogues are brought to: those that namespaces with certain labels stand for (semantics 6).

use std::sync::Arc;

use addons_engine::{Cluster, local, remote};
use common::target::Standing;

use super::DistributionError;
use crate::context::Context;
use crate::error::OperationError;

/// A cluster by the name that it is reported by.
pub struct Target {
    /// Its namespace here, or the name of a context.
    pub name: String,
    /// The connection, to which nothing was sent yet.
    pub cluster: Result<Arc<Cluster>, OperationError>,
}

/// The clusters of the namespaces that a selector of labels selects, by name.
///
/// # Errors
/// The namespaces cannot be listed; none is selected.
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
