//! A client that dies at any request: the next run ends where an undisturbed one would have (semantics 13).

use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::operation::Operation;
use super::rig::Rig;
use super::seed;
use super::state::state;

async fn crash(operation: Operation, name: &'static str, salt: u64) -> Result<()> {
    let mut tally = Tally::new(name);
    let (wanted, requests, reads) = operation.undisturbed().await?;
    for number in seed::choose(requests - reads, 6, salt) {
        let request = reads + number;
        for delivered in seed::both(true, false, number) {
            let case = format!(
                "{operation:?}, stopped at request {request} of {requests}, delivered: {delivered}"
            );
            let rig = Rig::new("crash").await?;
            one(operation, &rig, request, delivered, &wanted)
                .await
                .with_context(|| case)?;
            tally.ran();
        }
    }
    Ok(())
}

async fn one(
    operation: Operation,
    rig: &Rig,
    request: usize,
    delivered: bool,
    wanted: &Value,
) -> Result<()> {
    let line = operation.prepare(rig).await?;
    rig.run_until(&line, request, delivered).await?;
    operation.again(rig, &line).await?;
    let found = state(&rig.stage).await?;
    ensure!(
        found == *wanted,
        "found:\n{found:#}\ninstead of:\n{wanted:#}"
    );
    Ok(())
}

#[tokio::test]
async fn install() -> Result<()> {
    crash(Operation::Install, "engine::crash::install", 1).await
}

#[tokio::test]
async fn upgrade_with_prune() -> Result<()> {
    crash(Operation::Upgrade, "engine::crash::upgrade_with_prune", 2).await
}

#[tokio::test]
async fn uninstall() -> Result<()> {
    crash(Operation::Uninstall, "engine::crash::uninstall", 3).await
}
