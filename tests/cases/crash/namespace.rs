//! A namespace that was created right before a crash.

use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use addons_tests::stage::config_map;
use anyhow::{Result, ensure};

/// The uid of a namespace that was created right before the crash is not recorded; our label tells that it is ours.
#[tokio::test]
async fn a_namespace_created_before_the_crash_is_still_ours() -> Result<()> {
    for delivered in [true, false] {
        let rig = Rig::new("crash-namespace").await?;
        let stage = &rig.stage;
        let target = format!("{}-target", stage.namespace);
        let kept = config_map("kept", "1");
        let index = stage.index("small.yaml", &[("small", "1.0.0", &kept)])?;
        let line = format!("install small --target-namespace {target} --channel {index} --yes");
        // Now the definitions and the namespace of the records are there: what is created is the target namespace.
        let other = stage.index(
            "other.yaml",
            &[("other", "1.0.0", &config_map("other", "1"))],
        )?;
        let other = format!("install other --channel {other} --yes");
        stage.run(&other).await?.done()?;
        let stop = Fault::at(1, Action::Stop { delivered });
        let stop = stop.method("POST").path("/api/v1/namespaces?");
        ensure!(rig.run_until(&line, stop).await?, "it was not stopped");
        ensure!(
            stage.has("namespace", &target).await? == delivered,
            "it was stopped at another request"
        );
        stage.run(&format!("{line} --steal-lock")).await?.done()?;
        let record = stage.record("small").await?;
        ensure!(
            record["status"]["createdNamespace"]["name"] == *target,
            "{record:#}"
        );
        let line = format!("uninstall small -n {} --yes", stage.namespace);
        stage.run(&line).await?.done()?;
        let left = stage.get("namespace", &target).await?;
        ensure!(
            left.is_none_or(|left| left["metadata"]["deletionTimestamp"].is_string()),
            "the namespace leaks"
        );
    }
    Ok(())
}
