//! Beside an addon-manager that is still at work: what differs only in the marks of either tool is not written again.

use std::time::Duration;

use addons_tests::until::until;
use anyhow::{Result, ensure};
use tokio::time::sleep;

use super::Directory;
use super::watched::{until_value, watch};

/// Applies a manifest as a cycle of the addon-manager does: it creates what exists once, and applies the rest.
async fn cycle(directory: &Directory, ensured: &str, reconciled: &str) -> Result<()> {
    let kubectl = &directory.stage.plugin;
    // What exists already is an error that the addon-manager ignores.
    kubectl
        .kubectl_with_input(&["create", "-f", "-"], ensured)
        .await?;
    for _ in 0..2 {
        let args = ["apply", "-f", "-"];
        kubectl
            .kubectl_with_input(&args, reconciled)
            .await?
            .done()?;
    }
    Ok(())
}

/// Semantics 21: a cycle of the addon-manager after an adoption changes its own annotation, and the next pass writes nothing.
#[tokio::test]
async fn a_cycle_of_the_addon_manager_is_no_edit() -> Result<()> {
    let directory = Directory::new("am-cycle").await?;
    let stage = &directory.stage;
    let reconciled = directory.reconciled("dns", "1");
    let ensured = directory.ensured("settings", "1");
    cycle(&directory, &ensured, &reconciled).await?;
    directory.write("dns.yaml", &(reconciled.clone() + &ensured))?;
    let line = directory.line("--yes");
    stage.run(&line).await?.done()?;
    for _ in 0..3 {
        cycle(&directory, &ensured, &reconciled).await?;
        let before = stage.must("configmap", "dns").await?;
        let mark = stage.cluster.audit().mark()?;
        let said = stage.run(&line).await?.done()?;
        ensure!(said.stderr.contains("nothing to do"), "{}", said.stderr);
        let requests = stage.requests(mark)?;
        ensure!(
            requests.writes("kubectl-addons") == 0,
            "{:?}",
            requests.by_verb("kubectl-addons")
        );
        let after = stage.must("configmap", "dns").await?;
        ensure!(
            before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"],
            "{after:#}"
        );
    }
    Ok(())
}

/// The same for a watch, which sees each write of the addon-manager.
#[tokio::test]
async fn a_watch_beside_the_addon_manager_writes_nothing() -> Result<()> {
    let directory = Directory::new("am-watch").await?;
    let stage = &directory.stage;
    let reconciled = directory.reconciled("dns", "1");
    cycle(&directory, "", &reconciled).await?;
    directory.write("dns.yaml", &reconciled)?;
    let _watch = watch(&directory, "1s")?;
    until_value(&directory, "dns", Some("1")).await?;
    until("it is ours", async || {
        let live = stage.must("configmap", "dns").await?;
        let labels = &live["metadata"]["labels"];
        let is_ours = labels.to_string().contains("kubectl-addons.dev/owner");
        Ok(is_ours.then_some(()).ok_or(labels.to_string()))
    })
    .await?;
    sleep(Duration::from_secs(3)).await;
    cycle(&directory, "", &reconciled).await?;
    let before = stage.must("configmap", "dns").await?;
    for _ in 0..3 {
        cycle(&directory, "", &reconciled).await?;
        // What is tested is that nothing happens.
        sleep(Duration::from_secs(2)).await;
    }
    let after = stage.must("configmap", "dns").await?;
    ensure!(
        before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"],
        "{before:#} {after:#}"
    );
    Ok(())
}
