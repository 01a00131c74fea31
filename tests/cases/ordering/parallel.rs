//! What nothing stands between is under way at the same time, at most so many at once.

use std::time::Duration;

use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use anyhow::{Result, ensure};

use super::sent::Sent;
use super::{config_map, deployment, manifest};

#[tokio::test]
async fn a_slow_object_holds_up_only_what_waits_for_it() -> Result<()> {
    let rig = Rig::new("slow").await?;
    let objects = [
        deployment("behind", &["slow", "quick"]),
        deployment("beside", &["quick"]),
        config_map("slow"),
        config_map("quick"),
    ];
    let index = (rig.stage).index("index.yaml", &[("some", "1.0.0", &manifest(&objects))])?;
    let delay = Action::Delay(Duration::from_secs(3));
    let slow = Fault::always(delay)
        .method("PATCH")
        .path("/configmaps/slow");
    rig.proxy.fault(slow.writes());
    let line = format!("install some --channel {index} --yes --timeout 60s");
    rig.run(&line).await?.done()?;
    let sent = Sent::after(&rig, 0);
    sent.ensure("configmaps/quick", "deployments/beside")?;
    sent.ensure("configmaps/slow", "deployments/behind")?;
    ensure!(
        sent.is_before("deployments/beside", "deployments/behind")?
            && !sent.is_before("configmaps/slow", "deployments/beside")?,
        "nothing was sent while the slow one was under way: {sent:?}"
    );
    Ok(())
}

#[tokio::test]
async fn at_most_so_many_objects_at_once() -> Result<()> {
    let rig = Rig::new("at-once").await?;
    let objects: Vec<_> = (0..40).map(|i| config_map(&format!("c-{i}"))).collect();
    let index = (rig.stage).index("index.yaml", &[("some", "1.0.0", &manifest(&objects))])?;
    // Nobody is answered before all that may be sent at once have come.
    let delay = Fault::always(Action::Delay(Duration::from_millis(50))).method("PATCH");
    rig.proxy.fault(delay);
    let install = format!("install some --channel {index} --yes --wait=false");
    for (flag, most) in [("--concurrency=2", 2), ("--concurrency=1", 1), ("", 32)] {
        let before = rig.proxy.requests().len();
        rig.run(&format!("{install} {flag}")).await?.done()?;
        let sent = Sent::after(&rig, before);
        let at_once = sent.most_at_once();
        ensure!(
            sent.objects().len() == 40
                && at_once <= most
                && (at_once == most || most == 32 && at_once > 8),
            "{flag}: {at_once} at once"
        );
        let uninstall = format!("uninstall some -n {} --yes", rig.stage.namespace);
        rig.stage.run(&uninstall).await?.done()?;
    }
    Ok(())
}
