//! A client that dies while it adopts.

use addons_tests::chaos::matrix;
use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use anyhow::{Result, ensure};

use super::{TOOLS, installed, is_ours, manifest, pods};

/// At every write. As soon as the record names the objects, whoever comes next needs no `--adopt`.
#[tokio::test]
async fn every_write_of_an_adoption_is_continued() -> Result<()> {
    let name = "adopt::interrupted::every_write_of_an_adoption_is_continued";
    matrix::run(name, matrix::deaths(14), async |&(number, delivered)| {
        let rig = Rig::new("adopt-crash").await?;
        let stage = &rig.stage;
        stage.run("init").await?.done()?;
        installed(stage, TOOLS[0]).await?;
        let before = pods(stage).await?;
        let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(None))])?;
        let line = format!("install web --channel {index} --yes");
        let stop = Fault::at(number, Action::Stop { delivered }).writes();
        let adopt = format!("{line} --adopt --concurrency 1");
        let is_stopped = rig.run_until(&adopt, stop).await?;
        let next = stage.run(&format!("{line} --steal-lock")).await?;
        if next.code != 0 {
            let begun = stage.get("addoninstallation", "web").await?;
            let inventory = begun.map(|record| record["status"]["inventory"].clone());
            ensure!(
                inventory.is_none_or(|inventory| inventory.is_null()),
                "it was recorded and not continued: {}",
                next.stderr
            );
            stage.run(&format!("{line} --adopt")).await?.done()?;
        }
        is_ours(stage, &before).await?;
        stage.run("uninstall web --yes").await?.done()?;
        ensure!(!stage.has("deployment", "web").await?, "it stays");
        Ok(is_stopped)
    })
    .await
}

/// The same where only owners change: the next run continues from the record alone.
#[tokio::test]
async fn a_change_of_owners_is_continued() -> Result<()> {
    let name = "adopt::interrupted::a_change_of_owners_is_continued";
    matrix::run(name, matrix::deaths(8), async |&(number, delivered)| {
        let rig = Rig::new("adopt-owners-crash").await?;
        let stage = &rig.stage;
        stage.run("init").await?.done()?;
        installed(stage, TOOLS[0]).await?;
        let before = pods(stage).await?;
        let index = stage.index("index.yaml", &[("web", "1.0.0", &manifest(None))])?;
        let line = format!("adopt web --channel {index} --yes");
        let stop = Fault::at(number, Action::Stop { delivered }).writes();
        let is_stopped = rig
            .run_until(&format!("{line} --concurrency 1"), stop)
            .await?;
        let next = stage.run(&format!("{line} --steal-lock")).await?;
        ensure!(
            next.code == 0 || next.stderr.contains("has already been taken over"),
            "{}",
            next.stderr
        );
        let map = stage.must("configmap", "settings").await?;
        ensure!(map["data"]["dropped"] == "yes", "{map}");
        ensure!(before == pods(stage).await?, "other pods");
        stage.run("upgrade web --yes").await?.done()?;
        is_ours(stage, &before).await?;
        Ok(is_stopped)
    })
    .await
}
