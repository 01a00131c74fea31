//! Two releases beside each other (semantics 13): neither damages what the other one recorded.

use addons_tests::control_plane::Own;
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::json;

/// `till` 1.0.0 is installed, and 1.1.0 in the index.
async fn installed(stage: &Stage) -> Result<()> {
    let first = format!("{}{}", config_map("a", "1"), config_map("b", "1"));
    let index = stage.index("index.yaml", &[("till", "1.0.0", &first)])?;
    stage
        .run(&format!("install till --channel {index} --yes"))
        .await?
        .done()?;
    stage.index("index.yaml", &[("till", "1.1.0", &config_map("a", "2"))])?;
    Ok(())
}

#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: records of the release before and after this one"
)]
async fn what_a_newer_release_recorded_is_written_by_no_verb() -> Result<()> {
    let stage = Stage::new("releases-newer").await?;
    installed(&stage).await?;
    stage
        .patch_status("addoninstallation", "till", &json!({"format": 2}))
        .await?;
    let before = stage.record("till").await?;
    for line in [
        "upgrade till --yes",
        "upgrade till --repair --yes",
        "uninstall till --yes",
        "uninstall till --keep --yes",
        "adopt till --yes",
        "adopt --release till --yes",
    ] {
        let mark = stage.cluster.audit().mark()?;
        let said = stage.run(line).await?.ended(4)?.stderr;
        let is_told = ["newer release", "format 2"]
            .iter()
            .all(|part| said.contains(part));
        ensure!(is_told, "{line}: {said}");
        let writes = stage.requests(mark)?.writes("kubectl-addons");
        ensure!(writes == 0, "{line}: {writes} writes");
    }
    let reconciled = stage.run("reconcile till").await?;
    ensure!(reconciled.code != 0, "{}", reconciled.stdout);
    ensure!(stage.record("till").await? == before, "the record changed");
    for name in ["a", "b"] {
        let object = stage.must("configmap", name).await?;
        ensure!(object["data"]["key"] == "1", "{object}");
    }
    // Reading goes on.
    let listed = stage.run("list").await?.done()?.stdout;
    ensure!(listed.contains("till"), "{listed}");

    stage
        .patch_status("addoninstallation", "till", &json!({"format": 1}))
        .await?;
    stage.run("upgrade till --yes").await?.done()?;
    ensure!(!stage.has("configmap", "b").await?, "b is left");
    let recorded = stage.record("till").await?;
    ensure!(recorded["status"]["format"] == 1, "{recorded}");
    Ok(())
}

#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: records of the release before and after this one"
)]
async fn fields_of_a_newer_release_outlast_every_write() -> Result<()> {
    static CLUSTER: Own = Own::new();
    let stage = Stage::of_module(&CLUSTER, "releases-fields").await?;
    let definition = "addoninstallations.kubectl-addons.dev";
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/later";
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let patch = json!([{"op": "add", "path": path, "value": schema}]).to_string();
    let args = ["patch", "crd", definition, "--type=json", "-p", &patch];
    stage.kubectl(&args).await?.done()?;
    installed(&stage).await?;
    let later = json!({"a": [1, {"b": "c"}], "d": true});
    until("the field is served", async || {
        stage
            .patch_status("addoninstallation", "till", &json!({"later": later}))
            .await?;
        let record = stage.record("till").await?;
        Ok((record["status"]["later"] == later)
            .then_some(())
            .ok_or_else(|| record["status"].to_string()))
    })
    .await?;
    // The lock, the journal and the report; a failure; the reconciler's condition and its finalizer.
    let broken = config_map("a", "3").replace("v1", "v0");
    for (entry, line, code) in [
        (config_map("a", "2"), "upgrade till --yes", 0),
        (broken, "upgrade till --yes", 1),
        (config_map("a", "4"), "reconcile till", 0),
        (config_map("a", "4"), "upgrade till --repair --yes", 0),
        (config_map("a", "4"), "adopt --release till --yes", 0),
    ] {
        stage.index("index.yaml", &[("till", "1.2.0", &entry)])?;
        stage.run(line).await?.ended(code)?;
        let Some(record) = stage.get("addoninstallation", "till").await? else {
            ensure!(line.contains("--release"), "{line}: the record is gone");
            continue;
        };
        ensure!(record["status"]["later"] == later, "{line}: {record}");
    }
    Ok(())
}

#[tokio::test]
#[cfg_attr(
    not(full),
    ignore = "FULL=1: records of the release before and after this one"
)]
async fn what_the_release_before_recorded_is_continued() -> Result<()> {
    let stage = Stage::new("releases-older").await?;
    installed(&stage).await?;
    // Fields that it did not have.
    let missing = json!({"cluster": null, "former": null, "format": null});
    stage
        .patch_status("addoninstallation", "till", &missing)
        .await?;
    let nothing = stage.run("upgrade till --dry-run --yes").await?;
    nothing.done()?;
    stage.run("upgrade till --yes").await?.done()?;
    let record = stage.record("till").await?;
    let status = &record["status"];
    ensure!(status["installed"]["version"] == "1.1.0", "{status}");
    ensure!(status["cluster"]["kubeSystemUid"].is_string(), "{status}");
    ensure!(!stage.has("configmap", "b").await?, "b is left");
    Ok(())
}
