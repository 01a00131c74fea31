//! A person and another client change one installation at the same time.

use std::time::Duration;

use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use addons_tests::stage::config_map;
use addons_tests::until::until;
use anyhow::{Result, ensure};

/// What another client upgraded further after the plan was made is planned again, and then there is nothing left to do.
#[tokio::test]
async fn an_upgrade_that_another_client_overtakes_is_planned_again() -> Result<()> {
    let rig = Rig::new("raced").await?;
    let stage = &rig.stage;
    let index = stage.index("index.yaml", &[("set", "1.0.0", &config_map("one", "1"))])?;
    let install = format!("install set --channel {index} --yes");
    stage.run(&install).await?.done()?;
    stage.index("index.yaml", &[("set", "1.1.0", &config_map("one", "2"))])?;
    // Its lock is written late.
    let late = Action::Delay(Duration::from_secs(10));
    let lock = Fault::at(1, late)
        .method("PUT")
        .path("addoninstallations/set/status");
    rig.proxy.fault(lock);
    let overtaking = async {
        until("the lock is under way", async || {
            let is_seen = rig.proxy.hits() == 1;
            Ok(is_seen.then_some(()).ok_or_else(String::new))
        })
        .await?;
        stage.index("index.yaml", &[("set", "1.2.0", &config_map("one", "3"))])?;
        stage.run("upgrade set --yes").await?.done()
    };
    let (overtaken, overtaking) = tokio::join!(rig.run("upgrade set --yes"), overtaking);
    overtaking?;
    let said = overtaken?.done()?.stderr;
    for words in ["planning again", "nothing to do"] {
        ensure!(said.contains(words), "no {words:?}: {said}");
    }
    let found = stage.must("configmap", "one").await?;
    ensure!(found["data"]["key"] == "3", "{found}");
    Ok(())
}
