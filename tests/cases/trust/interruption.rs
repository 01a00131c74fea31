//! Ctrl-C and SIGTERM: an operation says goodbye, and the next one begins at once.

use std::process::Command;
use std::time::Duration;

use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use addons_tests::stage::{Stage, config_map, deployment, recorded};
use addons_tests::until::until;
use anyhow::{Result, ensure};

/// trust 20.
#[tokio::test]
async fn t20_an_interrupted_operation_frees_its_lock_and_says_how_to_continue() -> Result<()> {
    for name in ["INT", "TERM"] {
        let stage = Stage::new("interrupted").await?;
        let never = format!(
            "{}{}",
            config_map("settings", "a"),
            deployment("web", 1, Some(&stage.namespace))
        );
        let index = stage.index("index.yaml", &[("set", "1.0.0", &never)])?;
        stage.run("init").await?.done()?;
        let line = format!("install set --channel {index} --yes --timeout 120s");
        let mut process = stage.plugin.start(&line.split(' ').collect::<Vec<_>>())?;
        until("the operation waits for its Deployment", async || {
            let record = stage
                .get("addoninstallation", "set")
                .await?
                .unwrap_or_default();
            let is_there = stage.has("deployment", "web").await?;
            let holds = record["status"]["operation"]["holder"].is_string();
            Ok(if is_there && holds {
                Ok(())
            } else {
                Err(record.to_string())
            })
        })
        .await?;
        let sent = Command::new("kill")
            .args([&format!("-{name}"), "--", &process.id().to_string()])
            .status()?;
        ensure!(sent.success(), "kill -{name} failed");
        let ended = tokio::task::spawn_blocking(move || process.wait()).await??;
        let said = std::fs::read_to_string(stage.plugin.home().join("stderr"))?;
        ensure!(ended.code() == Some(130), "{name}: {ended:?}: {said}");
        for part in ["interrupted", "continue: kubectl addons upgrade set"] {
            ensure!(said.contains(part), "{name}: {part}: {said}");
        }
        // Its lock is free, its journal is kept, and what it applied is ours.
        let next = stage
            .run("upgrade set --yes --no-wait-lock --wait=false")
            .await?
            .done()?;
        ensure!(
            !next.stderr.contains("waiting for"),
            "{name}: {}",
            next.stderr
        );
        let record = stage.record("set").await?;
        ensure!(record["status"]["operation"].is_null(), "{name}: {record}");
        let inventory = record["status"]["inventory"].to_string();
        ensure!(
            inventory.contains("settings") && inventory.contains("web"),
            "{name}: {inventory}"
        );
        ensure!(!inventory.contains("planned"), "{name}: {inventory}");
    }
    Ok(())
}

/// trust 20: what the server answers within two seconds is recorded, and nothing else is sent.
#[tokio::test]
async fn t20_answers_under_way_are_recorded() -> Result<()> {
    const AT_ONCE: usize = 4;
    let rig = Rig::new("answered").await?;
    let stage = &rig.stage;
    let maps: Vec<String> = (0..3 * AT_ONCE)
        .map(|number| config_map(&format!("map-{number:02}"), "1"))
        .collect();
    let index = stage.index("index.yaml", &[("set", "1.0.0", &maps.concat())])?;
    stage.run("init").await?.done()?;
    let slow = Fault::always(Action::Delay(Duration::from_secs(1)));
    let slow = slow.method("PATCH").path("/configmaps/");
    rig.proxy.fault(slow.writes());
    let line = format!("install set --channel {index} --yes --concurrency {AT_ONCE}");
    let mut process = rig.through.start(&line.split(' ').collect::<Vec<_>>())?;
    until("the first objects are sent", async || {
        let hits = rig.proxy.hits();
        Ok(if hits >= AT_ONCE {
            Ok(())
        } else {
            Err(hits.to_string())
        })
    })
    .await?;
    let sent = Command::new("kill")
        .args(["-INT", "--", &process.id().to_string()])
        .status()?;
    ensure!(sent.success(), "kill failed");
    let ended = tokio::task::spawn_blocking(move || process.wait()).await??;
    ensure!(ended.code() == Some(130), "{ended:?}");
    let sent = rig.proxy.hits();
    ensure!(sent < maps.len(), "all {sent} objects were sent");
    let record = stage.record("set").await?;
    let known = recorded(&record).filter(|object| object["uid"].is_string());
    let known = known.count();
    ensure!(
        known == sent,
        "{known} of {sent} answers are recorded: {record}"
    );
    println!(
        "{sent} of {} objects were sent, and each answer is recorded",
        maps.len()
    );
    Ok(())
}
