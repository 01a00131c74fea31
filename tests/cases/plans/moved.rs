//! Where anything moved since a plan was made it is not run, and everything that moved is listed.

use addons_tests::small;
use addons_tests::stage::{Stage, config_map};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use serde_json::json;

/// A user with `small` 1.0.0, and how they plan its upgrade.
struct Upgrade {
    stage: Stage,
    plan: String,
    tally: Tally,
}

impl Upgrade {
    async fn new() -> Result<Self> {
        let stage = Stage::new("plan-moved").await?;
        let first = small::index(&stage, "1.0.0", &small::first())?;
        let line = format!("install small --channel {first} --yes");
        stage.run(&line).await?.done()?;
        let second = small::index(&stage, "2.0.0", &small::second())?;
        let namespace = &stage.namespace;
        let plan = format!("plan small -n {namespace} --channel {second} -o plan.json");
        let tally = Tally::new("plans::moved");
        Ok(Self { stage, plan, tally })
    }

    async fn plan(&self) -> Result<()> {
        self.stage.run(&self.plan).await?.done().map(drop)
    }

    /// Runs the plan, which is refused without a write and says all this.
    async fn refused(&mut self, said: &[&str]) -> Result<()> {
        let mark = self.stage.cluster.audit().mark()?;
        let refused = self.stage.run("apply plan.json --yes").await?.ended(4)?;
        for words in said {
            ensure!(
                refused.stderr.contains(words),
                "{words:?} is not in\n{}",
                refused.stderr
            );
        }
        ensure!(
            refused
                .stderr
                .contains("fix:    write the plan again with the command that wrote it"),
            "{}",
            refused.stderr
        );
        let requests = self.stage.requests(mark)?;
        ensure!(requests.writes("kubectl-addons") == 0, "{requests:?}");
        self.tally.ran();
        Ok(())
    }
}

#[tokio::test]
async fn what_moved_is_listed_and_nothing_is_done() -> Result<()> {
    let mut upgrade = Upgrade::new().await?;

    // Live objects: edited and deleted ones, both told.
    upgrade.plan().await?;
    let stage = &upgrade.stage;
    stage
        .patch("configmap", "kept", &json!({"data": {"key": "edited"}}))
        .await?;
    stage.delete("configmap", "dropped-a").await?;
    upgrade
        .refused(&[
            "ConfigMap kept: edited by another client",
            "ConfigMap dropped-a: it is gone",
        ])
        .await?;

    // A foreign object in the way.
    upgrade.plan().await?;
    upgrade.stage.apply(&config_map("added", "foreign")).await?;
    upgrade
        .refused(&[
            "the plan can no longer be made",
            "ConfigMap added exists, and no installation owns it",
        ])
        .await?;
    upgrade.stage.delete("configmap", "added").await?;

    // The record's spec.
    upgrade.plan().await?;
    let ensure_spec = json!({"spec": {"reconcile": "Ensure"}});
    upgrade
        .stage
        .patch("addoninstallation", "small", &ensure_spec)
        .await?;
    upgrade
        .refused(&["its spec, labels or annotations changed"])
        .await?;

    // A manifest that is not what its hash says, then one with another hash.
    upgrade.plan().await?;
    upgrade
        .stage
        .write("2.0.0/small-2.0.0-0.yaml", &config_map("other", "1"))?;
    upgrade.refused(&["manifestHash is"]).await?;
    let changed = [&*small::second(), &*config_map("more", "1")].concat();
    small::index(&upgrade.stage, "2.0.0", &changed)?;
    upgrade
        .refused(&[
            "the entry changed",
            "manifestHash ",
            "ConfigMap more: it would be applied now",
        ])
        .await?;

    // Somebody else upgrades.
    upgrade.plan().await?;
    let line = upgrade.plan.replace("plan small", "upgrade small --yes");
    let line = line.replace(" -o plan.json", "");
    upgrade.stage.run(&line).await?.done()?;
    upgrade
        .refused(&["its inventory changed", "there is nothing left to do"])
        .await?;
    Ok(())
}

/// A kind that is served since: the plan was made without it.
#[tokio::test]
async fn discovery_moved() -> Result<()> {
    let stage = Stage::new("plan-discovery").await?;
    let manifest = super::definitions::set(&stage, "{size: 1}");
    let index = stage.index("index.yaml", &[("things", "1.0.0", &manifest)])?;
    let line = format!("plan things --channel {index} -o plan.json");
    stage.run(&line).await?.done()?;
    stage.apply(&super::definitions::definition(&stage)).await?;
    let refused = stage.run("apply plan.json --yes").await?.ended(4)?;
    let name = format!("things.{}.example.test", stage.namespace);
    ensure!(
        refused.stderr.contains(&name) && refused.stderr.contains("the plan can no longer be made"),
        "{}",
        refused.stderr
    );
    stage.delete("crd", &name).await?;
    stage.run("apply plan.json --yes").await?.done()?;
    Ok(())
}
