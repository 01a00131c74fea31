//! Objects that the server refuses in the middle of an operation, which no dry run could tell: exit code, what is done anyway, what is
//! not.

use addons_tests::denial::{When, allow, deny};
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::Value;

fn versions(record: &Value) -> (&Value, &Value) {
    let status = &record["status"];
    (&status["installed"]["version"], &status["phase"])
}

#[tokio::test]
async fn a_denied_object_ends_with_6_and_the_policys_words() -> Result<()> {
    let stage = Stage::new("denied").await?;
    deny(
        &stage,
        When::Executed,
        &["CREATE"],
        "denied",
        "no denied here",
    )
    .await?;
    let manifest = [config_map("denied", "1"), config_map("fine", "1")].concat();
    let index = stage.index("index.yaml", &[("some", "1.0.0", &manifest)])?;
    let denied = stage
        .run(&format!("install some --channel {index} --yes"))
        .await?
        .ended(6)?;
    ensure!(
        denied.stderr.contains("ConfigMap denied") && denied.stderr.contains("no denied here"),
        "{}",
        denied.stderr
    );
    ensure!(
        stage.has("configmap", "fine").await?,
        "what does not wait for it was not applied"
    );
    let record = stage.record("some").await?;
    ensure!(record["status"]["phase"] == "Failed", "{record:#}");
    ensure!(record["status"]["operation"].is_null(), "{record:#}");
    Ok(())
}

/// A pod that has a ConfigMap as a volume.
fn pod(name: &str, config_map: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers: [{{name: main, image: example.test/main}}]\n  \
         volumes: [{{name: config, configMap: {{name: {config_map}}}}}]\n---\n"
    )
}

#[tokio::test]
async fn after_a_failed_apply_nothing_is_pruned_and_the_next_run_does() -> Result<()> {
    let stage = Stage::new("rejected").await?;
    let namespace = stage.namespace.clone();
    let first = [config_map("old", "1"), config_map("kept", "1")].concat();
    let index = stage.index("index.yaml", &[("some", "1.0.0", &first)])?;
    stage
        .run(&format!("install some --channel {index} --yes"))
        .await?
        .done()?;
    deny(
        &stage,
        When::Executed,
        &["CREATE"],
        "broken",
        "it is broken",
    )
    .await?;
    let second = [
        config_map("broken", "2"),
        config_map("kept", "2"),
        config_map("new", "2"),
        pod("needs", "broken"),
        pod("free", "new"),
    ]
    .concat();
    let index = stage.index("index.yaml", &[("some", "2.0.0", &second)])?;
    let line = format!("upgrade some -n {namespace} --channel {index} --yes");
    let failed = stage.run(&line).await?.ended(6)?;
    ensure!(
        failed.stderr.contains("ConfigMap broken"),
        "{}",
        failed.stderr
    );
    let why = format!("{namespace}/ConfigMap broken failed, and it waits for that (reference)");
    ensure!(failed.stderr.contains(&why), "{}", failed.stderr);
    let kept = stage.must("configmap", "kept").await?;
    ensure!(
        kept["data"]["key"] == "2",
        "what does not wait was not applied"
    );
    for (kind, name) in [("configmap", "new"), ("pod", "free")] {
        ensure!(
            stage.has(kind, name).await?,
            "what does not wait was not applied: {kind} {name}"
        );
    }
    ensure!(!stage.has("pod", "needs").await?, "what waits was applied");
    ensure!(stage.has("configmap", "old").await?, "something was pruned");
    let record = stage.record("some").await?;
    let (version, phase) = versions(&record);
    ensure!(version == "1.0.0" && phase == "Failed", "{record:#}");

    allow(&stage).await?;
    let index = stage.index("index.yaml", &[("some", "2.0.1", &second)])?;
    stage
        .run(&format!(
            "upgrade some -n {namespace} --channel {index} --yes"
        ))
        .await?
        .done()?;
    ensure!(
        !stage.has("configmap", "old").await?,
        "not pruned after all"
    );
    let record = stage.record("some").await?;
    let (version, phase) = versions(&record);
    ensure!(version == "2.0.1" && phase == "Ready", "{record:#}");
    Ok(())
}
