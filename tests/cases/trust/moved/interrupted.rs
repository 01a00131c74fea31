//! A move that is cut off.

use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use addons_tests::stage::{config_map, deployment};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{content, get, handed_over, index, install, run};

/// An installation in an old place, and its objects as they were there.
struct Old {
    rig: Rig,
    namespace: String,
    target: String,
    before: [Value; 2],
}

impl Old {
    async fn new() -> Result<Self> {
        let rig = Rig::new("move").await?;
        let plugin = &rig.stage.plugin;
        let (namespace, target) = (
            format!("{}-old", rig.stage.namespace),
            format!("{}-target", rig.stage.namespace),
        );
        let create = ["create", "namespace", &namespace];
        plugin.kubectl(&create).await?.done()?;
        let manifest = [config_map("settings", "1"), deployment("web", 1, None)].concat();
        let index = index(plugin, "set", &target, &manifest)?;
        install(plugin, &namespace, "set", &index).await?;
        let before = [
            get(plugin, "configmap", &target, "settings").await?,
            get(plugin, "deployment", &target, "web").await?,
        ];
        Ok(Self {
            rig,
            namespace,
            target,
            before,
        })
    }

    /// Lets the locks of a client that was killed expire.
    async fn free(&self) -> Result<()> {
        let plugin = &self.rig.stage.plugin;
        for namespace in [&self.namespace, &self.rig.stage.namespace] {
            let record = get(plugin, "addoninstallation", namespace, "set").await?;
            if !record["status"]["operation"].is_object() {
                continue;
            }
            let patch = json!({"status": {"operation": {"leaseSeconds": 0}}}).to_string();
            let args = ["patch", "addoninstallation", "set", "-n", namespace];
            let flags = ["--subresource=status", "--type=merge", "-p", &patch];
            let args = [&args[..], &flags].concat();
            plugin.kubectl(&args).await?.done()?;
        }
        Ok(())
    }

    /// Runs init again as long as the record is in its old place. What was agreed to is not asked again once it is begun.
    async fn again(&self, line: &str) -> Result<()> {
        let stage = &self.rig.stage;
        let (old, system) = (&self.namespace, &stage.namespace);
        let left = get(&stage.plugin, "addoninstallation", old, "set").await?;
        if left == Value::Null {
            return Ok(());
        }
        let is_begun = stage.has("addoninstallation", "set").await?;
        let line = if is_begun { "init" } else { line };
        let said = run(&stage.plugin, line, 0).await?;
        let moved = format!("{old}/set moved to {system}/set");
        ensure!(said.contains(&moved), "{said}");
        Ok(())
    }

    /// That there is one record, whose objects are as they were.
    async fn moved(&self) -> Result<()> {
        let stage = &self.rig.stage;
        let (plugin, old, system) = (&stage.plugin, &self.namespace, &stage.namespace);
        let gone = get(plugin, "addoninstallation", old, "set").await?;
        ensure!(gone == Value::Null, "{gone:#}");
        let record = stage.record("set").await?;
        let status = &record["status"];
        ensure!(status["operation"] == Value::Null, "{record:#}");
        ensure!(status["phase"] == "Ready", "{record:#}");
        let (from, to) = ((old.as_str(), "set"), (system.as_str(), "set"));
        for before in &self.before {
            let kind = before["kind"].as_str().unwrap_or_default();
            let name = before["metadata"]["name"].as_str().unwrap_or_default();
            let now = get(plugin, kind, &self.target, name).await?;
            ensure!(content(&now) == content(before), "{now:#}");
            handed_over(&now, from, to)?;
        }
        let created = get(plugin, "namespace", "", &self.target).await?;
        handed_over(&created, from, to)?;
        let said = run(plugin, "upgrade set --yes", 0).await?;
        ensure!(said.contains("nothing to do"), "{said}");
        run(plugin, "uninstall set --yes", 0).await?;
        let left = get(plugin, "namespace", "", &self.target).await?;
        let is_going = !left["metadata"]["deletionTimestamp"].is_null();
        ensure!(left == Value::Null || is_going, "{left:#}");
        Ok(())
    }
}

/// trust 1, 20: a move that is cut off at any of its writes is finished by the next run.
#[tokio::test]
async fn t01_a_move_that_was_cut_off_is_continued() -> Result<()> {
    let mut tally = Tally::new("trust::moved");
    let mut cut = 0;
    for write in 1.. {
        let old = Old::new().await?;
        let line = format!("init --concurrency 1 --move {}/set", old.namespace);
        let delivered = write % 2 == 0;
        let fault = Fault::at(write, Action::Stop { delivered });
        let stopped = old.rig.run_until(&line, fault.changes()).await?;
        old.free().await?;
        let at = || format!("cut off at write {write}");
        old.again(&line).await.with_context(at)?;
        old.moved().await.with_context(at)?;
        tally.ran();
        if !stopped {
            break;
        }
        cut += 1;
    }
    tally.note(format!("cut off at {cut} writes, continued each time"));
    ensure!(cut >= 10, "only {cut} writes were cut off");
    Ok(())
}
