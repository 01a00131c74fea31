//! `adopt --release` gives an add-on back: every object stays, and the former tool goes on where it was (semantics 12).

use addons_tests::chaos::matrix;
use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::Value;

use super::tools::{applications, chart, deploy, helm, kapp, manifest, release, releases};
use super::{TOOLS, installed, managers, pods, ready};

/// What is of us in the metadata of an object.
fn ours(object: &Value) -> Vec<String> {
    let metadata = &object["metadata"];
    let maps = [&metadata["labels"], &metadata["annotations"]];
    let keys = maps
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|map| map.keys());
    let named = keys.filter(|key| key.contains("kubectl-addons")).cloned();
    let fields = metadata["managedFields"].as_array().into_iter().flatten();
    let by = fields.filter_map(|entry| entry["manager"].as_str());
    let by = by.filter(|manager| manager.starts_with("kubectl-addons"));
    named.chain(by.map(str::to_owned)).collect()
}

/// That nothing of us is left, in the cluster and on the objects.
async fn is_let_go(stage: &Stage) -> Result<()> {
    ensure!(
        !stage.has("addoninstallation", "web").await?,
        "it is recorded"
    );
    for (kind, name) in [("deployment", "web"), ("configmap", "settings")] {
        let args = ["get", kind, name, "--show-managed-fields", "-o", "json"];
        let object: Value = serde_json::from_str(&stage.kubectl(&args).await?.stdout)?;
        let left = ours(&object);
        ensure!(left.is_empty(), "{kind}: {left:?}");
    }
    Ok(())
}

/// Adopted and given back, with or without an upgrade in between.
async fn there_and_back(stage: &Stage, upgrades: bool) -> Result<()> {
    let before = pods(stage).await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(false))])?;
    let adopt = format!("adopt web --channel {index} --yes");
    stage.run(&adopt).await?.done()?;
    if upgrades {
        stage.run("upgrade web --yes").await?.done()?;
    }
    // Named with its namespace: another test may have a `web` in a namespace that stands for the same cluster.
    let release = format!("adopt --release web -n {}", stage.namespace);
    let dry = stage
        .run(&format!("{release} --dry-run"))
        .await?
        .done()?
        .stderr;
    let told = format!(
        "release   {}/ConfigMap settings (it stays as it is)",
        stage.namespace
    );
    ensure!(dry.contains(&told), "{dry}");
    ensure!(
        dry.contains("were upgraded since") == upgrades || !dry.contains("restore"),
        "{dry}"
    );
    let said = stage.run(&release).await?;
    ensure!(
        said.code != 0 && said.stderr.contains("without a terminal"),
        "{said:?}"
    );
    let said = stage.run(&format!("{release} --yes")).await?.done()?.stderr;
    ensure!(said.contains("web 1.0.0 released: 2 kept"), "{said}");
    is_let_go(stage).await?;
    ready(stage).await?;
    ensure!(before == pods(stage).await?, "other pods");
    Ok(())
}

#[tokio::test]
async fn helm_goes_on_with_its_release() -> Result<()> {
    for upgrades in [false, true] {
        let stage = Stage::new("back-helm").await?;
        release(&stage, &manifest(true)).await?;
        there_and_back(&stage, upgrades).await?;
        ensure!(releases(&stage).await? == "web", "helm does not find it");
        let left = managers(&stage, "configmap", "settings").await?;
        ensure!(left.contains("helm"), "{left:?}");
        let shelf = Shelf::new()?;
        // A field that was dropped goes, and a new object comes.
        let text = [manifest(false), config_map("more", "1")].concat();
        let new = chart(&shelf, "2.0.0", &text)?;
        helm(&stage, &["upgrade", "web", &new.to_string_lossy()])
            .await?
            .done()?;
        let map = stage.must("configmap", "settings").await?;
        ensure!(map["data"]["dropped"].is_null(), "{map}");
        helm(&stage, &["rollback", "web", "1"]).await?.done()?;
        helm(&stage, &["uninstall", "web"]).await?.done()?;
        ensure!(!stage.has("configmap", "settings").await?, "it stays");
        ensure!(!stage.has("deployment", "web").await?, "it stays");
    }
    Ok(())
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: needs kapp")]
async fn kapp_goes_on_with_its_application() -> Result<()> {
    let stage = Stage::new("back-kapp").await?;
    deploy(&stage, &manifest(true)).await?;
    there_and_back(&stage, false).await?;
    ensure!(
        applications(&stage).await? == ["web"],
        "kapp does not find it"
    );
    let before = pods(&stage).await?;
    deploy(&stage, &manifest(false)).await?;
    let map = stage.must("configmap", "settings").await?;
    ensure!(map["data"]["dropped"].is_null(), "{map}");
    ensure!(before == pods(&stage).await?, "other pods");
    kapp(&stage, &["delete", "--app", "web", "--yes"])
        .await?
        .done()?;
    ensure!(!stage.has("configmap", "settings").await?, "it stays");
    Ok(())
}

#[tokio::test]
async fn kubectl_goes_on_with_its_objects() -> Result<()> {
    for tool in [TOOLS[0], TOOLS[1]] {
        let stage = Stage::new("back-kubectl").await?;
        installed(&stage, tool).await?;
        let made = managers(&stage, "configmap", "settings").await?;
        let before = stage.must("configmap", "settings").await?;
        there_and_back(&stage, false).await?;
        let left = managers(&stage, "configmap", "settings").await?;
        ensure!(left == made, "{left:?} {made:?}");
        let after = stage.must("configmap", "settings").await?;
        let annotations = |object: &Value| object["metadata"]["annotations"].clone();
        ensure!(annotations(&after) == annotations(&before), "{after}");
        let args = [tool.args, &["-n", &stage.namespace]].concat();
        let text = manifest(false);
        stage
            .plugin
            .kubectl_with_input(&args, &text)
            .await?
            .done()?;
        let map = stage.must("configmap", "settings").await?;
        ensure!(map["data"]["dropped"].is_null(), "{map}");
    }
    Ok(())
}

/// What no other tool had installed is let go, too.
#[tokio::test]
async fn an_installation_of_our_own_is_let_go() -> Result<()> {
    let stage = Stage::new("back-own").await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(false))])?;
    let install = format!("install web --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let before = pods(&stage).await?;
    let said = stage.run("adopt --release web --yes").await?.done()?.stderr;
    ensure!(said.contains("web 1.0.0 released: 2 kept"), "{said}");
    is_let_go(&stage).await?;
    ensure!(before == pods(&stage).await?, "other pods");
    // Nothing claims them: whoever applies them next owns them.
    let args = ["apply", "--server-side", "-n", &stage.namespace, "-f", "-"];
    let text = manifest(true);
    stage
        .plugin
        .kubectl_with_input(&args, &text)
        .await?
        .done()?;
    let again = format!("adopt --release web -n {} --yes", stage.namespace);
    let said = stage.run(&again).await?;
    ensure!(
        said.code != 0 && said.stderr.contains("no installation named web"),
        "{said:?}"
    );
    Ok(())
}

#[tokio::test]
async fn every_write_is_continued() -> Result<()> {
    let name = "adopt::released::every_write_is_continued";
    matrix::run(name, matrix::deaths(8), async |&(number, delivered)| {
        let rig = Rig::new("back-crash").await?;
        let stage = &rig.stage;
        stage.run("init").await?.done()?;
        release(stage, &manifest(true)).await?;
        let before = pods(stage).await?;
        let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(false))])?;
        let adopt = format!("adopt web --channel {index} --yes");
        stage.run(&adopt).await?.done()?;
        let stop = Fault::at(number, Action::Stop { delivered }).writes();
        let line = format!("adopt --release web -n {} --yes", stage.namespace);
        let is_stopped = rig
            .run_until(&format!("{line} --concurrency 1"), stop)
            .await?;
        let next = stage.run(&format!("{line} --steal-lock")).await?;
        ensure!(
            next.code == 0 || next.stderr.contains("no installation named web"),
            "{}",
            next.stderr
        );
        is_let_go(stage).await?;
        ensure!(releases(stage).await? == "web", "helm does not find it");
        ensure!(before == pods(stage).await?, "other pods");
        helm(stage, &["uninstall", "web"]).await?.done()?;
        Ok(is_stopped)
    })
    .await
}
