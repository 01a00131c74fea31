//! `adopt NAME`: owners change and nothing else, until an upgrade is agreed to.

use std::collections::BTreeSet;

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{TOOLS, Tool, installed, is_ours, managers, manifest, pods};

/// What must not change: spec and data, and the generation of the template.
async fn content(stage: &Stage) -> Result<Value> {
    let web = stage.must("deployment", "web").await?;
    let map = stage.must("configmap", "settings").await?;
    Ok(json!([web["spec"], map["data"]]))
}

#[tokio::test]
async fn only_owners_change_until_an_upgrade() -> Result<()> {
    for tool in [TOOLS[0], TOOLS[2]] {
        until_an_upgrade(tool).await?;
    }
    Ok(())
}

async fn until_an_upgrade(tool: Tool) -> Result<()> {
    let stage = Stage::new("adopt-owners").await?;
    let namespace = stage.namespace.clone();
    stage.run("init").await?.done()?;
    installed(&stage, tool).await?;
    let (before, made) = (pods(&stage).await?, content(&stage).await?);
    let wanted = [manifest(None), config_map("late", "1")].concat();
    let wanted = wanted.replace("data: {key: '1'}\n", "data: {key: '1'}\n---\n");
    let index = stage.index("index.yaml", &[("web", "1.0.0", &wanted)])?;
    let line = format!("adopt web --channel {index}");

    let said = stage
        .run(&format!("{line} --dry-run"))
        .await?
        .done()?
        .stderr;
    for words in [
        "adopting web 1.0.0: only owners change",
        &format!(
            "adopt     {namespace}/ConfigMap settings (from {})",
            tool.name
        ),
        &format!("missing   {namespace}/ConfigMap late (the next upgrade creates it)"),
        "the next upgrade would change:",
        "dry run: nothing was changed",
    ] {
        ensure!(said.contains(words), "{words}: {said}");
    }
    ensure!(!stage.has("addoninstallation", "web").await?, "it was made");
    let said = stage.run(&line).await?;
    ensure!(
        said.code != 0 && said.stderr.contains("without a terminal"),
        "{said:?}"
    );
    let said = stage.run(&format!("{line} --yes")).await?.done()?.stderr;
    ensure!(
        said.contains("web 1.0.0 taken over: 2 adopted, ready in"),
        "{said}"
    );
    ensure!(content(&stage).await? == made, "something was applied");
    ensure!(before == pods(&stage).await?, "other pods");
    ensure!(!stage.has("configmap", "late").await?, "it was created");
    let left = managers(&stage, "configmap", "settings").await?;
    ensure!(left.len() == 1, "{left:?}");
    let record = stage.record("web").await?;
    ensure!(
        record["status"]["installed"]["adopted"] == true,
        "{record:#}"
    );
    let shown = stage.run("status web").await?.done()?.stdout;
    ensure!(!shown.contains("edited since"), "{shown}");

    upgraded(&stage, &line, &before, &made).await
}

/// It is due, and differences are visible, but nothing is applied that was not agreed to, also where edits are reverted.
async fn upgraded(
    stage: &Stage,
    line: &str,
    before: &BTreeSet<String>,
    made: &Value,
) -> Result<()> {
    let namespace = &stage.namespace;
    let again = stage.run(&format!("{line} --yes")).await?.ended(1)?.stderr;
    ensure!(again.contains("web has already been taken over"), "{again}");
    let ensures = json!({"spec": {"reconcile": "Ensure"}});
    stage.patch("addoninstallation", "web", &ensures).await?;
    let said = stage.run("upgrade web").await?;
    ensure!(said.code != 0, "{said:?}");
    ensure!(content(stage).await? == *made, "something was applied");
    stage.run("reconcile web").await?;
    ensure!(
        content(stage).await? == *made,
        "the loop has applied something"
    );
    let record = stage.record("web").await?;
    let conditions = record["status"]["conditions"].as_array();
    let asks = |one: &Value| one["type"] == "NeedsConfirmation" && one["reason"] == "Adopted";
    ensure!(
        conditions.is_some_and(|all| all.iter().any(asks)),
        "{record:#}"
    );
    let said = stage.run("diff web").await?.ended(1)?.stdout;
    ensure!(
        said.contains("data.dropped") && said.contains("ConfigMap late"),
        "{said}"
    );
    stage.run("upgrade web --yes").await?.done()?;
    is_ours(stage, before).await?;
    ensure!(stage.has("configmap", "late").await?, "it is missing");
    let record = stage.record("web").await?;
    ensure!(
        record["status"]["installed"]["adopted"].is_null(),
        "{record:#}"
    );
    let said = stage.run(&format!("{line} --yes")).await?.ended(1)?.stderr;
    ensure!(
        said.contains("web is already installed")
            && said.contains(&format!(
                "fix:    kubectl addons upgrade web -n {namespace} --adopt"
            )),
        "{said}"
    );
    stage.run("uninstall web --yes").await?.done()?;
    let said = stage.run(&format!("{line} --yes")).await?.ended(1)?.stderr;
    ensure!(said.contains("none of the objects of web exists"), "{said}");
    Ok(())
}

/// What our own installation left behind when its record was deleted.
#[tokio::test]
async fn orphans_are_adopted_under_any_name() -> Result<()> {
    let stage = Stage::new("adopt-orphans").await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(None))])?;
    let install = format!("install web --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let before = pods(&stage).await?;
    for name in ["web", "shop"] {
        let record = ["delete", "addoninstallation", "web"];
        stage.kubectl(&record).await?;
        let line = format!("adopt web --name {name} --channel {index} --yes");
        let said = stage.run(&line).await?.done()?.stderr;
        ensure!(said.contains("2 adopted"), "{said}");
        let map = stage.must("configmap", "settings").await?;
        let owner = &map["metadata"]["annotations"]["kubectl-addons.dev/installation"];
        ensure!(*owner == format!("{}/{name}", stage.namespace), "{map}");
        let left = managers(&stage, "configmap", "settings").await?;
        ensure!(left.len() == 1, "{left:?}");
        stage.run(&format!("upgrade {name} --yes")).await?.done()?;
        ensure!(before == pods(&stage).await?, "other pods");
    }
    stage.run("uninstall shop --yes").await?.done()?;
    ensure!(!stage.has("configmap", "settings").await?, "it stays");
    Ok(())
}
