//! Several processes that watch: one leads, and an older directory never undoes a newer one (semantics 21).

use std::time::Duration;

use addons_tests::plugin::Plugin;
use addons_tests::running::Running;
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// One path that is another directory for every process: as on several machines.
const PATH: &str = "/proc/self/cwd/addons";
const LEASE: &str = "addons-sync-proc-self-cwd-addons-";

/// A machine with a directory: `sync PATH --watch` where a ConfigMap of the directory has this value.
fn node(stage: &Stage, value: &str) -> Result<Running> {
    let plugin = Running::home(stage, stage.plugin.kubeconfig())?;
    write(&plugin, stage, value)?;
    let args = ["sync", PATH, "--watch", "--interval", "1s", "--yes"];
    Running::of(plugin, &args)
}

async fn leads(node: &Running) -> Result<()> {
    node.says("leads: ").await
}

/// Writes the directory of a machine.
fn write(plugin: &Plugin, stage: &Stage, value: &str) -> Result<()> {
    let folder = plugin.home().join("addons");
    std::fs::create_dir_all(&folder)?;
    let manifest = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n  namespace: {}\n  \
         labels: {{addonmanager.kubernetes.io/mode: Reconcile}}\ndata: {{key: {value:?}}}\n",
        stage.namespace
    );
    let next = folder.join(".next");
    std::fs::write(&next, manifest)?;
    Ok(std::fs::rename(next, folder.join("one.yaml"))?)
}

async fn value(stage: &Stage) -> Result<Value> {
    let found = stage.get("configmap", "one").await?.unwrap_or_default();
    Ok(found["data"]["key"].clone())
}

/// Until the ConfigMap has a value.
async fn is(stage: &Stage, expected: &str, nodes: &[&Running]) -> Result<()> {
    until(&format!("the ConfigMap is {expected}"), async || {
        let found = value(stage).await?;
        let said: Vec<String> = nodes.iter().map(|node| node.said()).collect();
        let is_there = found == expected;
        Ok(is_there
            .then_some(())
            .ok_or_else(|| format!("{found}: {}", said.join("---\n"))))
    })
    .await
}

/// The Lease of the directory.
async fn lease(stage: &Stage) -> Result<Value> {
    let args = ["get", "leases", "-o", "json"];
    let leases: Value = serde_json::from_str(&stage.kubectl(&args).await?.stdout)?;
    let mut all = leases["items"].as_array().into_iter().flatten();
    let name = |lease: &Value| lease["metadata"]["name"].as_str().map(str::to_owned);
    let found = all.find(|lease| name(lease).is_some_and(|name| name.starts_with(LEASE)));
    found.cloned().context("no Lease")
}

async fn stage(what: &str) -> Result<Stage> {
    let stage = Stage::new(what).await?;
    stage.run("init").await?.done()?;
    Ok(stage)
}

/// During an upgrade of several machines the new directory is applied, and stays; when all of them go back, the old one is.
#[tokio::test]
async fn the_newest_directory_wins_until_all_machines_go_back() -> Result<()> {
    let mut tally = Tally::new("directories::elected");
    let stage = stage("newest").await?;
    let old = node(&stage, "1")?;
    is(&stage, "1", &[&old]).await?;
    let begun = Instant::now();
    let new = node(&stage, "2")?;
    is(&stage, "2", &[&old, &new]).await?;
    tally.note(format!("a newer directory won after {:?}", begun.elapsed()));
    let holder = lease(&stage).await?["spec"]["leaseTransitions"].clone();
    // Longer than an older directory waits for a newer one.
    let end = Instant::now() + Duration::from_secs(22);
    while Instant::now() < end {
        let found = value(&stage).await?;
        ensure!(found == "2", "{found}: {}{}", old.said(), new.said());
        sleep(Duration::from_millis(100)).await;
    }
    let after = lease(&stage).await?;
    ensure!(after["spec"]["leaseTransitions"] == holder, "{after}");

    let begun = Instant::now();
    write(&new.plugin, &stage, "1")?;
    is(&stage, "1", &[&old, &new]).await?;
    tally.note(format!("both were back after {:?}", begun.elapsed()));
    // The same directories, in the other order: the machine that is upgraded leads again.
    write(&old.plugin, &stage, "3")?;
    is(&stage, "3", &[&old, &new]).await?;
    tally.ran();
    Ok(())
}

/// A leader that is killed is replaced within its lease, one that is ended at once; what is applied does not change.
#[tokio::test]
async fn a_killed_leader_is_replaced() -> Result<()> {
    let mut tally = Tally::new("directories::elected");
    let stage = stage("replaced").await?;
    let mut first = node(&stage, "1")?;
    leads(&first).await?;
    let mut second = node(&stage, "1")?;
    is(&stage, "1", &[&first]).await?;
    sleep(Duration::from_secs(3)).await;
    ensure!(!second.said().contains("leads: "), "{}", second.said());
    let begun = Instant::now();
    first.process.kill()?;
    let edit = json!({"data": {"key": "by hand"}});
    stage.patch("configmap", "one", &edit).await?;
    is(&stage, "1", &[&second]).await?;
    let took = begun.elapsed();
    tally.note(format!("a killed leader was replaced after {took:?}"));
    ensure!(took < Duration::from_secs(25), "{took:?}");

    let third = node(&stage, "1")?;
    second.ends(130)?;
    let begun = Instant::now();
    leads(&third).await?;
    let took = begun.elapsed();
    tally.note(format!("an ended leader was replaced after {took:?}"));
    ensure!(took < Duration::from_secs(10), "{took:?}");
    tally.ran();
    Ok(())
}

/// A single `sync` beside a leader waits for its locks, and the leader's directory counts.
#[tokio::test]
async fn a_single_run_beside_a_leader() -> Result<()> {
    let stage = stage("single").await?;
    let leader = node(&stage, "1")?;
    is(&stage, "1", &[&leader]).await?;
    write(&stage.plugin, &stage, "2")?;
    // The first time, the leader still makes passes because its directory is young; after that only because of what it sees.
    for _ in 0..3 {
        let said = stage.run(&format!("sync {PATH} --yes")).await?;
        ensure!([0, 4].contains(&said.code), "{}", said.stderr);
        is(&stage, "1", &[&leader]).await?;
        sleep(Duration::from_millis(2500)).await;
    }
    Ok(())
}

/// A machine without the directory does not lead, and the first record needs no `init`.
#[tokio::test]
async fn a_machine_without_the_directory_does_not_lead() -> Result<()> {
    let stage = Stage::new("nothing").await?;
    let first = node(&stage, "1")?;
    leads(&first).await?;
    is(&stage, "1", &[&first]).await?;
    let second = node(&stage, "1")?;
    let folder = first.plugin.home().join("addons");
    std::fs::rename(&folder, first.plugin.home().join("elsewhere"))?;
    leads(&second).await?;
    ensure!(first.said().contains("no such file"), "{}", first.said());
    ensure!(value(&stage).await? == "1");
    Ok(())
}
