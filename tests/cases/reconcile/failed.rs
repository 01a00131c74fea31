//! A target that failed: the loop does not apply it again by itself (semantics 12).

use std::time::Duration;

use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// A ConfigMap, and a Deployment whose pods need a ServiceAccount.
fn manifest(value: &str, account: &str) -> String {
    let pods = format!("serviceAccountName: {account}, containers: ");
    config_map("one", value) + &deployment("web", 1, None).replace("containers: ", &pods)
}

/// The reason of `Ready`, where the record says that.
async fn reason(stage: &Stage) -> Result<Value> {
    let record = stage.record("set").await?;
    let conditions = record["status"]["conditions"].as_array();
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|one| one["type"] == "Ready");
    Ok(ready
        .map(|ready| ready["reason"].clone())
        .unwrap_or_default())
}

async fn is(stage: &Stage, expected: &str) -> Result<()> {
    until(&format!("the record is {expected}"), async || {
        let found = reason(stage).await?;
        Ok((found == expected)
            .then_some(())
            .ok_or_else(|| found.to_string()))
    })
    .await
}

/// An installation that follows an index.
fn record(stage: &Stage, index: &str) -> String {
    format!(
        "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonInstallation\nmetadata: {{name: set}}\n\
         spec: {{addonRef: {{name: set, index: '{index}'}}, targetNamespace: {}}}\n",
        stage.namespace
    )
}

/// Until the record says what is held, and which command ends that.
async fn is_held(stage: &Stage, process: &Running) -> Result<()> {
    until("the failure is a condition with a way out", async || {
        let record = stage.record("set").await?;
        let conditions = record["status"]["conditions"].as_array();
        let mut all = conditions.into_iter().flatten();
        let found = all.find(|one| one["type"] == "Stalled" && one["status"] == "True");
        let message = found.map_or("", |one| one["message"].as_str().unwrap_or_default());
        let is_held = message.contains("kubectl addons upgrade set -n ");
        Ok(is_held
            .then_some(())
            .ok_or_else(|| format!("{record} {}", process.said())))
    })
    .await
}

/// Nothing is written while its objects are as they were applied and one is failed. What is edited or deleted, newer content and
/// a person's command end that.
#[tokio::test]
async fn a_failed_target_is_held() -> Result<()> {
    let stage = super::stage("held").await?;
    stage.run("init").await?.done()?;
    let needs = manifest("1", "missing");
    let index = stage.index("index.yaml", &[("set", "1.0.0", &needs)])?;
    let process = Running::reconcile(&stage, &["--interval", "2s"])?;
    process.says("leads").await?;
    stage.apply(&record(&stage, &index)).await?;
    is_held(&stage, &process).await?;
    is(&stage, "RolloutFailed").await?;

    let before = stage.record("set").await?["metadata"]["resourceVersion"].clone();
    // Longer than the first pauses after a failure.
    super::is_idle(&stage, Duration::from_secs(12)).await?;
    ensure!(stage.record("set").await?["metadata"]["resourceVersion"] == before);

    // A person may try again at any time, and meets the same failure.
    let tried = stage.run("upgrade set --yes").await?;
    ensure!(tried.code == 1, "{} {}", tried.code, tried.stderr);
    is(&stage, "RolloutFailed").await?;

    // The cause is mended, and what failed is removed: it is applied again.
    stage
        .kubectl(&["create", "serviceaccount", "missing"])
        .await?;
    stage.delete("deployment", "web").await?;
    is(&stage, "Ready").await?;

    // Another failure, and newer content.
    let broken = manifest("2", "gone");
    stage.index("index.yaml", &[("set", "1.1.0", &broken)])?;
    is(&stage, "RolloutFailed").await?;
    stage.index("index.yaml", &[("set", "1.2.0", &manifest("3", "missing"))])?;
    is(&stage, "Ready").await?;
    let record = stage.record("set").await?;
    ensure!(
        record["status"]["installed"]["version"] == "1.2.0",
        "{record}"
    );

    // Another spec is another target.
    stage.index("index.yaml", &[("set", "1.3.0", &broken)])?;
    is(&stage, "RolloutFailed").await?;
    let older = json!({"spec": {"addonRef": {"version": "1.3.0"}}});
    let generation = stage.record("set").await?["metadata"]["generation"].clone();
    stage.patch("addoninstallation", "set", &older).await?;
    until("the new spec was tried", async || {
        let record = stage.record("set").await?;
        let tried = record["status"]["history"].as_array().map_or(0, Vec::len);
        let is_new = record["metadata"]["generation"] != generation;
        Ok((is_new && tried >= 6)
            .then_some(())
            .ok_or_else(|| record["status"].to_string()))
    })
    .await
}
