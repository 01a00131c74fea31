//! A client that dies at any request: the next run ends where an undisturbed one would have (semantics 13).

use addons_tests::proxy::{Action, Fault};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::addon;
use super::operation::Operation;
use super::rig::Rig;
use super::seed;
use super::state::state;
use crate::main_job::stage::config_map;

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
    let stop = Fault::at(request, Action::Stop { delivered });
    rig.run_until(&line, stop).await?;
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

/// The uid of a namespace that was created right before the crash is not recorded; our label tells that it is ours.
#[tokio::test]
async fn a_namespace_created_before_the_crash_is_still_ours() -> Result<()> {
    for delivered in [true, false] {
        let rig = Rig::new("crash-namespace").await?;
        let stage = &rig.stage;
        let target = format!("{}-target", stage.namespace);
        let index = addon::index(stage, "1.0.0", &config_map("kept", "1"))?;
        let line = format!("install small --target-namespace {target} --channel {index} --yes");
        // Now the definitions are there, and the first creation is that of the record's namespace.
        let other = stage.index(
            "other.yaml",
            &[("other", "1.0.0", &config_map("other", "1"))],
        )?;
        let other = format!("install other --channel {other} --yes");
        stage.run(&other).await?.done()?;
        let stop = Fault::at(2, Action::Stop { delivered });
        let stop = stop.method("POST").path("/api/v1/namespaces?");
        ensure!(rig.run_until(&line, stop).await?, "it was not stopped");
        ensure!(
            stage.has("namespace", &target).await? == delivered,
            "it was stopped at another request"
        );
        stage.run(&format!("{line} --steal-lock")).await?.done()?;
        let record = stage.record("small").await?;
        ensure!(
            record["status"]["createdNamespace"]["name"] == *target,
            "{record:#}"
        );
        let line = format!("uninstall small -n {} --yes", stage.namespace);
        stage.run(&line).await?.done()?;
        let left = stage.get("namespace", &target).await?;
        ensure!(
            left.is_none_or(|left| left["metadata"]["deletionTimestamp"].is_string()),
            "the namespace leaks"
        );
    }
    Ok(())
}
