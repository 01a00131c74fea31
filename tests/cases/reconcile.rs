//! `reconcile`: what the records ask for is done, and what cannot be done is a condition (semantics 12, 15, 20).

mod asked;
pub(crate) mod deployed;
mod election;
mod elsewhere;
mod failed;
mod pass;
mod raced;
mod rights;
mod watch;

use addons_tests::control_plane::definitions;
use addons_tests::stage::{Own, Stage};
use anyhow::Result;

/// A user of a cluster that only these tests use: a loop works on all installations of its cluster.
async fn stage(what: &str) -> Result<Stage> {
    static CLUSTER: Own = Own::const_new();
    Stage::of_module(&CLUSTER, what).await
}

/// A user of a cluster that no other test uses: its namespaces stand for the cluster, whoever reconciles it.
async fn alone(what: &str) -> Result<Stage> {
    Stage::on(Box::leak(Box::new(definitions::cluster().await?)), what).await
}
