//! The clusters of a fleet: the namespaces that stand for them, and the readiness of what is installed there.

use addons_engine::remote::{self, RemoteError};
use addons_engine::{local, record};
use addons_plan::standing::StandingState;
use common::api::names::InstallationName;
use common::target::NamespaceCluster;
use futures::{StreamExt as _, stream};

use addons_operation::context::Context;
use addons_operation::error::OperationError;
use addons_operation::health;

/// How many namespaces are read at the same time.
const CONCURRENT_NAMESPACES: usize = 16;

/// The namespaces that a selector matches. Both lists are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedNamespaces {
    /// Namespaces that stand for a cluster, including those whose labels are contradictory: their commands report that.
    pub clusters: Vec<String>,
    /// Namespaces that stand for no cluster.
    pub others: Vec<String>,
}

/// Returns the namespaces that a label selector matches, from one LIST, and which of them stand for a cluster.
///
/// # Errors
/// The server cannot be reached, or refuses.
pub async fn select_namespaces(
    ctx: &Context,
    selector: &str,
) -> Result<SelectedNamespaces, OperationError> {
    let home = ctx.home().await?;
    let system = &ctx.settings().system_namespace;
    let found = local::list_selected(home, selector).await?;
    let standings = stream::iter(found).map(async |namespace| {
        let standing = remote::read_standing(home, &namespace).await;
        (namespace, standing)
    });
    let standings: Vec<_> = standings.buffered(CONCURRENT_NAMESPACES).collect().await;
    let mut selected = SelectedNamespaces::default();
    for (namespace, standing) in standings {
        let is_cluster = match standing {
            Ok(NamespaceCluster::NoCluster | NamespaceCluster::NoNamespace) => namespace == *system,
            Ok(NamespaceCluster::ThisCluster | NamespaceCluster::OtherCluster(_))
            | Err(RemoteError::Standing(_)) => true,
            Err(error) => return Err(error.into()),
        };
        let list = if is_cluster {
            &mut selected.clusters
        } else {
            &mut selected.others
        };
        list.push(namespace);
    }
    Ok(selected)
}

/// Returns the first of these installations that is not ready, and its state: `web Degraded: Deployment web 1/2 ready`.
///
/// # Errors
/// A server cannot be reached, or refuses.
pub async fn find_not_ready(
    ctx: &Context,
    installations: &[InstallationName],
) -> Result<Option<String>, OperationError> {
    for InstallationName { namespace, name } in installations {
        let Some(record) = record::get(ctx.home().await?, namespace, name).await? else {
            return Ok(Some(format!("{name} is no longer installed")));
        };
        let health = health::object_health(ctx.cluster().await?, &record).await?;
        let state = health::installation_state(ctx, &record, &health, None).await?;
        if state.standing.state != StandingState::Ready || !health.is_well() {
            return Ok(Some(format!("{name} {state}")));
        }
    }
    Ok(None)
}
