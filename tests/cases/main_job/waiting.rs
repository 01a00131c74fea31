//! Waits end: with readiness, or in time with the reason.

use addons_tests::stage::{Stage, config_map, deployment};
use anyhow::{Result, ensure};

#[tokio::test]
async fn never_ready_ends_with_3_and_the_reason_and_prunes_nothing() -> Result<()> {
    let stage = Stage::new("never-ready").await?;
    let namespace = stage.namespace.clone();
    let first = [config_map("old", "1"), deployment("web", 1, None)].concat();
    let index = stage.index("index.yaml", &[("web", "1.0.0", &first)])?;
    stage
        .run(&format!("install web --channel {index} --yes"))
        .await?
        .done()?;

    stage.index(
        "index.yaml",
        &[("web", "2.0.0", &deployment("web", 1, Some("nowhere")))],
    )?;
    let timed_out = stage
        .run(&format!(
            "upgrade web -n {namespace} --channel {index} --yes --timeout 3s"
        ))
        .await?
        .ended(3)?;
    ensure!(
        timed_out.stderr.contains("Deployment web"),
        "{}",
        timed_out.stderr
    );
    ensure!(
        timed_out.stderr.contains("node"),
        "the reason (no node fits) is missing: {}",
        timed_out.stderr
    );
    ensure!(
        stage.get("configmap", "old").await?.is_some(),
        "pruned although the new version never worked"
    );
    let record = stage.record("web").await?;
    ensure!(
        record["status"]["phase"] == "Failed",
        "{}",
        record["status"]["phase"]
    );
    ensure!(
        record["status"]["operation"].is_null(),
        "the lock is still held"
    );

    // The next run resumes and prunes once it works.
    let name = stage
        .plugin
        .kubectl(&["get", "nodes", "-o", "name"])
        .await?
        .done()?;
    for node_name in name.stdout.lines() {
        stage
            .plugin
            .kubectl(&["label", node_name, "zone=nowhere", "--overwrite"])
            .await?
            .done()?;
    }
    stage
        .run(&format!("upgrade web -n {namespace} --yes --timeout 60s"))
        .await?
        .done()?;
    ensure!(
        stage.get("configmap", "old").await?.is_none(),
        "not pruned after the resumed upgrade"
    );
    Ok(())
}

#[tokio::test]
async fn without_waiting_it_returns_after_the_last_write() -> Result<()> {
    let stage = Stage::new("no-wait").await?;
    let index = stage.index(
        "index.yaml",
        &[("web", "1.0.0", &deployment("web", 1, Some("nowhere-else")))],
    )?;
    stage
        .run(&format!("install web --channel {index} --yes --wait=false"))
        .await?
        .done()?;
    ensure!(
        stage.get("deployment", "web").await?.is_some(),
        "nothing was written"
    );
    Ok(())
}
