//! `reconcile`: what the records ask for is done, and what cannot be done is a condition (semantics 12, 15, 20).

mod election;
mod pass;
mod watch;

use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::stage::Stage;
use anyhow::{Result, anyhow};
use tokio::sync::OnceCell;

/// A user of a cluster that only these tests use: a loop works on all installations of its cluster.
async fn stage(what: &str) -> Result<Stage> {
    static CLUSTER: OnceCell<Result<ControlPlane, String>> = OnceCell::const_new();
    let start = || async {
        let cluster = ControlPlane::start(Options::default()).await?;
        definitions::install(&cluster).await?;
        Ok::<_, anyhow::Error>(cluster)
    };
    let started =
        CLUSTER.get_or_init(|| async { start().await.map_err(|error| format!("{error:#}")) });
    let cluster = started.await.as_ref().map_err(|error| anyhow!("{error}"))?;
    Stage::on(cluster, what).await
}
