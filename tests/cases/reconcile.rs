//! `reconcile`: what the records ask for is done, and what cannot be done is a condition (semantics 12, 15, 20).

mod asked;
pub(crate) mod deployed;
mod election;
mod pass;
mod raced;
mod rights;
mod watch;

use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::stage::Stage;
use anyhow::{Result, anyhow};
use tokio::sync::OnceCell;

async fn start() -> Result<ControlPlane> {
    let cluster = ControlPlane::start(Options::default()).await?;
    definitions::install(&cluster).await?;
    Ok(cluster)
}

/// A user of a cluster that only these tests use: a loop works on all installations of its cluster.
async fn stage(what: &str) -> Result<Stage> {
    static CLUSTER: OnceCell<Result<ControlPlane, String>> = OnceCell::const_new();
    let started = CLUSTER
        .get_or_init(|| async { start().await.map_err(|error| format!("{error:#}")) })
        .await;
    let cluster = started.as_ref().map_err(|error| anyhow!("{error}"))?;
    Stage::on(cluster, what).await
}

/// A user of a cluster that no other test uses: its namespaces stand for the cluster, whoever reconciles it.
async fn alone(what: &str) -> Result<Stage> {
    Stage::on(Box::leak(Box::new(start().await?)), what).await
}
