//! Two clients at one installation: one works, the other one waits, gives up, follows or takes over (semantics 13).

use std::time::Duration;

use addons_tests::chaos::rig::Rig;
use addons_tests::chaos::state;
use addons_tests::proxy::{Action, Fault};
use addons_tests::small;
use addons_tests::stage::Stage;
use anyhow::{Result, ensure};

/// Long enough for another client to come in between, at the first write to a ConfigMap.
fn slowly(rig: &Rig, seconds: u64) {
    let delay = Action::Delay(Duration::from_secs(seconds));
    rig.proxy.fault(
        Fault::at(1, delay)
            .method("PATCH")
            .path("/configmaps/")
            .writes(),
    );
}

/// `small` is installed; the line that brings its second version.
async fn installed(stage: &Stage) -> Result<String> {
    let first = small::index(stage, "1.0.0", &small::first())?;
    let install = format!("install small --channel {first} --yes");
    stage.run(&install).await?.done()?;
    let second = small::index(stage, "2.0.0", &small::second())?;
    let namespace = &stage.namespace;
    Ok(format!(
        "upgrade small -n {namespace} --channel {second} --yes"
    ))
}

async fn until_it_works(stage: &Stage) -> Result<()> {
    let args = ["wait", "addoninstallation/small", "--timeout=60s"];
    let args = [&args[..], &["--for=jsonpath={.status.phase}=Progressing"]].concat();
    stage.kubectl(&args).await.map(drop)
}

#[tokio::test]
async fn the_second_waits_and_reports_what_the_first_did() -> Result<()> {
    let rig = Rig::new("lock-two").await?;
    let stage = &rig.stage;
    let line = installed(stage).await?;
    slowly(&rig, 3);
    let mark = stage.cluster.audit().mark()?;
    let second = async {
        until_it_works(stage).await?;
        stage.run(&line).await
    };
    let (first, second) = tokio::join!(rig.run(&line), second);
    let first = first?.done()?;
    let second = second?;
    ensure!(
        first.stderr.contains("small 2.0.0 upgraded"),
        "{}",
        first.stderr
    );
    ensure!(
        second.stderr.contains("waiting for") && second.stderr.contains("kubectl-addons, pid"),
        "{}",
        second.stderr
    );
    let second = second.done()?;
    ensure!(
        second.stderr.contains("small 2.0.0"),
        "the winner's result is not reported: {}",
        second.stderr
    );
    let requests = stage.requests(mark)?;
    let patches = requests
        .of("kubectl-addons")
        .filter(|request| request.is_write() && request.object.name == "kept");
    ensure!(patches.count() == 1, "both wrote");
    ensure!(
        state::of(stage, "small").await?["record"]["operation"].is_null(),
        "the lock is still there"
    );
    Ok(())
}

#[tokio::test]
async fn without_waiting_the_error_names_the_holder() -> Result<()> {
    let stage = Stage::new("lock-held").await?;
    let line = installed(&stage).await?;
    stage.lock("small", "jane@laptop (test)", 0).await?;
    let before = stage.must("addoninstallation", "small").await?;
    let refused = stage
        .run(&format!("{line} --no-wait-lock"))
        .await?
        .ended(4)?;
    ensure!(
        refused.stderr.contains("jane@laptop (test)") && refused.stderr.contains("--steal-lock"),
        "{}",
        refused.stderr
    );
    let after = stage.must("addoninstallation", "small").await?;
    ensure!(before == after, "the record was written");
    // Waiting ends too, with the same words.
    let refused = stage.run(&format!("{line} --timeout 1s")).await?.ended(4)?;
    ensure!(
        refused.stderr.contains("jane@laptop (test)"),
        "{}",
        refused.stderr
    );
    stage.run(&format!("{line} --steal-lock")).await?.done()?;
    let record = stage.must("addoninstallation", "small").await?;
    ensure!(record["status"]["operation"].is_null(), "{record:#}");
    ensure!(!stage.has("configmap", "dropped-a").await?, "not pruned");
    Ok(())
}

#[tokio::test]
async fn an_expired_lock_is_followed() -> Result<()> {
    let stage = Stage::new("lock-expired").await?;
    let line = installed(&stage).await?;
    stage.lock("small", "jane@laptop (test)", 3600).await?;
    stage.run(&format!("{line} --no-wait-lock")).await?.done()?;
    let record = stage.must("addoninstallation", "small").await?;
    ensure!(record["status"]["operation"].is_null(), "{record:#}");
    ensure!(record["status"]["installed"]["version"] == "2.0.0");
    Ok(())
}

#[tokio::test]
async fn a_live_holder_whose_lock_is_stolen_stops() -> Result<()> {
    let rig = Rig::new("lock-stolen").await?;
    let stage = &rig.stage;
    let line = installed(stage).await?;
    slowly(&rig, 8);
    let thief = async {
        until_it_works(stage).await?;
        stage.run(&format!("{line} --steal-lock")).await?.done()
    };
    let (holder, thief) = tokio::join!(rig.run(&line), thief);
    thief?;
    let holder = holder?.ended(4)?;
    ensure!(
        holder.stderr.contains("changed") && holder.stderr.contains("small"),
        "{}",
        holder.stderr
    );
    let record = stage.must("addoninstallation", "small").await?;
    ensure!(
        record["status"]["operation"].is_null() && record["status"]["phase"] == "Ready",
        "the holder wrote over what the thief did: {record:#}"
    );
    Ok(())
}
