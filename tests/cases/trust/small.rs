//! What people look at first tells the truth: list, status and plan.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// A catalogue in the cluster with one version of one ConfigMap.
async fn catalogue(stage: &Stage, value: &str) -> Result<()> {
    let manifest = config_map("web", value);
    let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": manifest}}});
    stage.catalogue("web", &version)?;
    stage.run("catalogue add web.json").await?.done().map(drop)
}

/// Installs web from an index.
async fn install(stage: &Stage, index: &str) -> Result<()> {
    let line = format!("install web --channel {index} --yes");
    stage.run(&line).await?.done().map(drop)
}

/// Suspends web, or not any more.
async fn suspend(stage: &Stage, suspend: bool) -> Result<()> {
    let patch = json!({"spec": {"suspend": suspend}});
    stage.patch("addoninstallation", "web", &patch).await
}

/// trust 21: the same version with another content is newer.
#[tokio::test]
async fn t21_a_changed_manifest_of_the_same_version_is_newer() -> Result<()> {
    let stage = Stage::new("changed-content").await?;
    stage.run("init").await?.done()?;
    catalogue(&stage, "1").await?;
    stage.run("install web --yes").await?.done()?;
    let said = stage.run("list --outdated").await?.done()?;
    ensure!(
        said.stderr.contains("everything is up to date"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    catalogue(&stage, "2").await?;
    let said = stage.run("list --outdated").await?.done()?;
    ensure!(
        said.stdout.contains("1.0.0 (changed)"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    stage.run("upgrade web --yes").await?.done()?;
    let said = stage.run("list --outdated").await?.done()?;
    ensure!(said.stdout.is_empty(), "{}", said.stdout);
    Ok(())
}

/// trust 21: what diff shows, status names.
#[tokio::test]
async fn t21_status_names_an_edited_config_map() -> Result<()> {
    let stage = Stage::new("by-hand").await?;
    let index = stage.index("web.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    install(&stage, &index).await?;
    let said = stage.run("status web").await?.done()?;
    ensure!(!said.stdout.contains("edited"), "{}", said.stdout);
    stage
        .patch("configmap", "web", &json!({"data": {"key": "other"}}))
        .await?;
    let said = stage.run("status web").await?.done()?;
    ensure!(
        said.stdout.contains("edited since our last apply"),
        "{}",
        said.stdout
    );
    stage.run("upgrade web --repair --yes").await?.done()?;
    let said = stage.run("status web").await?.done()?;
    ensure!(!said.stdout.contains("edited"), "{}", said.stdout);
    Ok(())
}

/// trust 21: what every verb passes over is seen to be so; and a plan goes to stdout as other programs do it.
#[tokio::test]
async fn t21_a_suspended_installation_is_seen_and_a_plan_goes_to_stdout() -> Result<()> {
    let stage = Stage::new("suspended").await?;
    let index = stage.index("web.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    let said = stage
        .run(&format!("plan web --channel {index} -o -"))
        .await?
        .done()?;
    let plan: Value = serde_json::from_str(&said.stdout)?;
    ensure!(plan["kind"] == "AddonPlan", "{plan}");
    ensure!(!stage.plugin.home().join("-").exists(), "a file named -");
    install(&stage, &index).await?;
    suspend(&stage, true).await?;
    for line in ["list", "status web"] {
        let said = stage.run(line).await?.done()?;
        ensure!(said.stdout.contains("Suspended"), "{line}: {}", said.stdout);
    }
    Ok(())
}

/// trust 14: no verb changes what is suspended, and the way out that the message names works.
#[tokio::test]
async fn t14_suspend_stops_every_verb() -> Result<()> {
    let stage = Stage::new("stopped").await?;
    let first = stage.index("one.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    let second = stage.index("two.yaml", &[("web", "2.0.0", &config_map("web", "2"))])?;
    install(&stage, &first).await?;
    suspend(&stage, true).await?;
    let before = stage.record("web").await?;
    for (line, code) in [
        (format!("upgrade web --channel {second} --yes"), 0),
        (format!("upgrade --channel {second} --yes"), 0),
        ("upgrade web --repair --yes".to_owned(), 0),
        (format!("channel apply {second} --yes"), 0),
        (format!("install web --channel {second} --yes"), 1),
        ("uninstall web --yes".to_owned(), 1),
    ] {
        let said = stage.run(&line).await?.ended(code)?;
        ensure!(
            said.stderr.contains("is suspended"),
            "{line}: {}",
            said.stderr
        );
    }
    let after = stage.record("web").await?;
    ensure!(after == before, "{before:#}\n{after:#}");
    ensure!(stage.must("configmap", "web").await?["data"]["key"] == "1");
    let said = stage.run("uninstall web --yes").await?.ended(1)?;
    ensure!(
        said.stderr
            .contains("fix:    kubectl patch addoninstallation web"),
        "{}",
        said.stderr
    );
    suspend(&stage, false).await?;
    stage.run("uninstall web --yes").await?.done().map(drop)
}

/// trust 21: what an uninstallation deletes can be seen first.
#[tokio::test]
async fn t21_an_uninstallation_can_be_looked_at_first() -> Result<()> {
    let stage = Stage::new("looked-at").await?;
    let index = stage.index("web.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    install(&stage, &index).await?;
    let before = stage.record("web").await?;
    let said = stage.run("uninstall web --dry-run").await?.done()?;
    ensure!(
        said.stderr.contains("ConfigMap web") && said.stderr.contains("nothing was changed"),
        "{}",
        said.stderr
    );
    ensure!(stage.record("web").await? == before, "the record changed");
    ensure!(stage.has("configmap", "web").await?, "it was deleted");
    stage.run("uninstall web --yes").await?.done().map(drop)
}

/// trust 21: what was changed with kubectl is carried out by the next upgrade, and only by that one.
#[tokio::test]
async fn t21_a_patched_spec_is_carried_out_once() -> Result<()> {
    let stage = Stage::new("patched-spec").await?;
    let index = stage.index("web.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    install(&stage, &index).await?;
    let patch = json!({"spec": {"conflicts": "Fail"}});
    stage.patch("addoninstallation", "web", &patch).await?;
    for is_due in [true, false] {
        let said = stage.run("upgrade web --yes").await?.done()?;
        ensure!(
            said.stderr.contains("nothing to do") != is_due,
            "{}",
            said.stderr
        );
        let record = stage.record("web").await?;
        let (status, metadata) = (&record["status"], &record["metadata"]);
        ensure!(
            status["observedGeneration"] == metadata["generation"] && status["operation"].is_null(),
            "{record:#}"
        );
    }
    Ok(())
}
