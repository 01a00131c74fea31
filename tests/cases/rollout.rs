//! A rolling restart of both replicas while reviews come in without a pause.

use std::time::Duration;

use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

use crate::deploy::load::Load;
use crate::deploy::world::{BASE, World};
use crate::rotation::reviews;

const CALLERS: usize = 16;

/// A new Pod is ready before an old one is told to end, which serves on while the API server may still choose it.
#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: thousands of reviews while replicas change"
)]
async fn no_review_fails_while_both_replicas_are_replaced() -> Result<()> {
    let mut tally = Tally::new("rollout");
    let world = World::new().await?;
    world.kubectl(&["apply", "-k", BASE]).await?;
    world.rolled_out().await?;
    let wanted = reviews()?;
    let load = Load::start(world.cluster.kubeconfig(), CALLERS).await?;
    let mut restarts = 0;
    while restarts < 2 || load.reviews() < wanted {
        // kubectl refuses to restart a Deployment twice within one second, by its clock.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let before = world.kubelet.reviews();
        world
            .in_system(&["rollout", "restart", "deployment/addons-webhook"])
            .await?;
        world.rolled_out().await?;
        let after = world.kubelet.reviews();
        let new = after.keys().filter(|pod| !before.contains_key(*pod));
        ensure!(new.count() == 2, "{before:?} {after:?}");
        restarts += 1;
    }
    world.gone().await?;
    let reviews = load.stop(|| world.kubelet.logs()).await?;
    ensure!(world.kubelet.logs().matches("drained and stopped").count() == 2 * restarts);
    tally.ran();
    tally.note(format!(
        "{reviews} reviews, none failed; {restarts} restarts of two replicas"
    ));
    Ok(())
}
