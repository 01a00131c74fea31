//! Fields of our objects that others took: `conflicts` of the record decides (semantics 12).

use anyhow::{Result, ensure};
use serde_json::json;

use crate::main_job::stage::{Stage, config_map};

/// Version 1 is installed and its ConfigMap edited by `kubectl-patch`; the line that brings version 2, for these conflicts.
async fn edited(stage: &Stage, conflicts: &str) -> Result<String> {
    let index = stage.index(
        "index.yaml",
        &[("fields", "1.0.0", &config_map("edited", "1"))],
    )?;
    stage
        .run(&format!("install fields --channel {index} --yes"))
        .await?
        .done()?;
    let spec = json!({"spec": {"conflicts": conflicts}});
    stage.patch("addoninstallation", "fields", &spec).await?;
    let edit = json!({"data": {"key": "theirs"}});
    stage.patch("configmap", "edited", &edit).await?;
    let index = stage.index(
        "index.yaml",
        &[("fields", "2.0.0", &config_map("edited", "2"))],
    )?;
    let namespace = &stage.namespace;
    Ok(format!(
        "upgrade fields -n {namespace} --channel {index} --yes"
    ))
}

#[tokio::test]
async fn fail_names_field_and_manager() -> Result<()> {
    let stage = Stage::new("conflicts-fail").await?;
    let line = edited(&stage, "Fail").await?;
    let refused = stage.run(&line).await?.ended(4)?;
    for word in ["ConfigMap edited", "data.key", "kubectl-patch"] {
        ensure!(
            refused.stderr.contains(word),
            "no {word}: {}",
            refused.stderr
        );
    }
    let object = stage.must("configmap", "edited").await?;
    ensure!(object["data"]["key"] == "theirs", "{object:#}");
    let record = stage.record("fields").await?;
    ensure!(
        record["status"]["installed"]["version"] == "1.0.0"
            && record["status"]["phase"] == "Failed",
        "{}",
        record["status"]
    );
    // The way out that the message names.
    let take = json!({"spec": {"conflicts": "Take"}});
    stage.patch("addoninstallation", "fields", &take).await?;
    stage.run(&line).await?.done()?;
    let object = stage.must("configmap", "edited").await?;
    ensure!(object["data"]["key"] == "2", "{object:#}");
    Ok(())
}

#[tokio::test]
async fn take_takes_the_field() -> Result<()> {
    let stage = Stage::new("conflicts-take").await?;
    let line = edited(&stage, "Take").await?;
    stage.run(&line).await?.done()?;
    let object = stage.must("configmap", "edited").await?;
    ensure!(object["data"]["key"] == "2", "{object:#}");
    Ok(())
}
