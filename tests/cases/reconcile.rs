//! `reconcile`: what the records ask for is done, and what cannot be done is a condition (semantics 12, 15, 20).

mod asked;
mod core;
pub(crate) mod deployed;
mod election;
mod elsewhere;
mod failed;
mod meanwhile;
mod others;
mod pass;
mod raced;
mod rights;
mod unfinished;
mod watch;

use std::time::Duration;

use addons_tests::control_plane::Own;
use addons_tests::stage::Stage;
use anyhow::{Result, ensure};
use tokio::time::sleep;

/// A user of a cluster that only these tests use: a loop works on all installations of its cluster.
async fn stage(what: &str) -> Result<Stage> {
    static CLUSTER: Own = Own::new();
    Stage::of_module(&CLUSTER, what).await
}

/// A loop reads and writes no object in a while in which nothing happens and no interval passes.
async fn is_idle_but_for_watches(stage: &Stage, window: Duration) -> Result<()> {
    let mark = stage.cluster.audit().mark()?;
    sleep(window).await;
    let requests = stage.requests(mark)?;
    let of_objects: Vec<_> = requests
        .of("kubectl-addons")
        .filter(|request| request.verb != "watch" && request.object.resource == "configmaps")
        .collect();
    ensure!(of_objects.is_empty(), "{of_objects:?}");
    Ok(())
}

/// What a loop does in a while in which nothing is to be done: it looks, and writes nothing but its Lease.
async fn is_idle(stage: &Stage, window: Duration) -> Result<()> {
    let mark = stage.cluster.audit().mark()?;
    sleep(window).await;
    let requests = stage.requests(mark)?;
    let writes: Vec<_> = requests
        .of("kubectl-addons")
        .filter(|request| request.is_write() && request.object.resource != "leases")
        .collect();
    ensure!(writes.is_empty(), "{writes:?}");
    ensure!(
        requests.count("list", "kubectl-addons") > 0,
        "it did not look at all"
    );
    Ok(())
}
