//! What a person began to remove, release or adopt, and did not end.

use addons_tests::stage::{config_map, deployment};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

/// Semantics 20: what a person was removing, releasing or adopting is left to them, whether that was interrupted or failed.
#[tokio::test]
async fn what_a_person_was_removing_is_not_installed_again() -> Result<()> {
    let stage = super::stage("unfinished").await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    stage
        .run(&format!("install web --channel {index} --yes"))
        .await?
        .done()?;
    stage.delete("configmap", "web").await?;
    stage.begin("uninstall", "web", "ann@desk", 20).await?;
    let asked = async |way_out: &str| {
        let said = stage.run("reconcile").await?.ended(1)?.stderr;
        ensure!(said.contains("has not ended"), "{said}");
        ensure!(!stage.has("configmap", "web").await?, "it is back");
        let record = stage.record("web").await?;
        let conditions = record["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let asks = conditions.find(|one| one["type"] == "NeedsConfirmation");
        let asks = asks.with_context(|| format!("no one is asked: {record}"))?;
        ensure!(asks["reason"] == "Unfinished", "{asks}");
        let message = asks["message"].as_str().unwrap_or_default();
        ensure!(message.contains(way_out), "{asks}");
        Ok::<_, anyhow::Error>(())
    };
    asked("kubectl addons uninstall web -n").await?;
    stage.begin("adopt", "web", "ann@desk", 20).await?;
    asked("kubectl addons upgrade web -n").await?;

    // An uninstallation that failed: a finalizer keeps an object.
    stage.begin("upgrade", "web", "ann@desk", 20).await?;
    stage.run("reconcile").await?.done()?;
    let held = json!({"metadata": {"finalizers": ["example.org/stays"]}});
    stage.patch("configmap", "web", &held).await?;
    stage
        .run("uninstall web --yes --timeout 2s")
        .await?
        .ended(3)?;
    let released = json!({"metadata": {"finalizers": null}});
    stage.patch("configmap", "web", &released).await?;
    asked("kubectl addons uninstall web -n").await?;
    // Whoever asks for it by name wants it.
    stage.run("upgrade web --yes").await?.done()?;
    ensure!(stage.has("configmap", "web").await?, "it was not installed");
    stage.run("reconcile").await?.done()?;
    Ok(())
}

/// What never was installed has no observed generation, and is not installed again either.
#[tokio::test]
async fn what_failed_before_it_was_removed_is_not_installed_again() -> Result<()> {
    let stage = super::stage("unfinished-first").await?;
    let never = deployment("web", 1, Some(&stage.namespace));
    let all = [config_map("web", "1"), never].concat();
    let index = stage.index("index.yaml", &[("web", "1.0.0", &all)])?;
    let install = format!("install web --channel {index} --yes --timeout 3s");
    stage.run(&install).await?.ended(3)?;
    let held = json!({"metadata": {"finalizers": ["example.org/stays"]}});
    stage.patch("configmap", "web", &held).await?;
    let uninstall = "uninstall web --yes --timeout 2s";
    stage.run(uninstall).await?.ended(3)?;
    let released = json!({"metadata": {"finalizers": null}});
    stage.patch("configmap", "web", &released).await?;
    let said = stage.run("reconcile").await?.ended(1)?.stderr;
    ensure!(said.contains("has not ended"), "{said}");
    ensure!(!stage.has("configmap", "web").await?, "it is back");
    stage.run("uninstall web --yes").await?.done()?;
    Ok(())
}
