//! `sync --watch`: repairs at once, deletes an interval later, and asks nothing while nothing changes.

use std::time::Duration;

use addons_tests::proxy::{Action, Fault, Proxy};
use addons_tests::running::Running;
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;

use super::Directory;

/// Starts `sync DIR --watch --yes` with this interval; it ends when what is returned is dropped.
pub(super) fn watch(directory: &Directory, interval: &str) -> Result<impl Drop> {
    let line = directory.line(&format!("--watch --interval {interval} --yes"));
    let words: Vec<&str> = line.split_whitespace().collect();
    directory.stage.plugin.start(&words)
}

/// Waits until a ConfigMap has a value, or is gone.
pub(super) async fn until_value(
    directory: &Directory,
    name: &str,
    expected: Option<&str>,
) -> Result<()> {
    until(&format!("{name} becomes {expected:?}"), async || {
        let value = directory.value(name).await?;
        let said = std::fs::read_to_string(directory.stage.plugin.home().join("stderr"))?;
        Ok(if value.as_deref() == expected {
            Ok(())
        } else {
            Err(format!("{value:?}: {said}"))
        })
    })
    .await
}

/// Semantics 21.
#[tokio::test]
async fn a_watch_repairs_upgrades_and_uninstalls() -> Result<()> {
    let mut tally = Tally::new("directories::watched");
    let directory = Directory::new("watch").await?;
    let stage = &directory.stage;
    for name in ["a", "b", "c"] {
        directory.write(&format!("{name}.yaml"), &directory.reconciled(name, "1"))?;
    }
    let _watch = watch(&directory, "1s")?;
    for name in ["a", "b", "c"] {
        until_value(&directory, name, Some("1")).await?;
    }
    idle(&directory).await?;
    let begun = Instant::now();
    stage
        .patch("configmap", "a", &json!({"data": {"key": "edited"}}))
        .await?;
    until_value(&directory, "a", Some("1")).await?;
    tally.note(format!("an edit was undone after {:?}", begun.elapsed()));
    idle(&directory).await?;
    stage.delete("configmap", "b").await?;
    until_value(&directory, "b", Some("1")).await?;
    let mark = stage.cluster.audit().mark()?;
    directory.write("b.yaml", &directory.reconciled("b", "2"))?;
    until_value(&directory, "b", Some("2")).await?;
    let asked = stage.requests(mark)?;
    let mut asked = asked.0.iter().map(|request| &request.object.resource);
    ensure!(
        asked.any(|resource| resource == "addonpolicies"),
        "it is judged by the policies of the start"
    );
    directory.remove("c.yaml")?;
    until_value(&directory, "c", None).await?;
    ensure!(stage.has("configmap", "a").await?);
    // A directory that cannot be read stops nothing but the pass.
    let elsewhere = stage.plugin.home().join("elsewhere");
    std::fs::rename(&directory.path, &elsewhere)?;
    stage
        .patch("configmap", "a", &json!({"data": {"key": "edited"}}))
        .await?;
    std::fs::rename(&elsewhere, &directory.path)?;
    until_value(&directory, "a", Some("1")).await?;
    ensure!(directory.value("b").await?.as_deref() == Some("2"));
    tally.ran();
    Ok(())
}

/// Waits until nothing but the Lease, and watches that are opened again, is asked for several intervals.
async fn idle(directory: &Directory) -> Result<()> {
    until("nothing is asked", async || {
        let mark = directory.stage.cluster.audit().mark()?;
        // The time that passes is what is tested.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let mut requests = directory.stage.requests(mark)?;
        requests
            .0
            .retain(|request| request.object.resource != "leases");
        let mut verbs = requests.by_verb("kubectl-addons");
        verbs.remove("watch");
        Ok(if verbs.is_empty() {
            Ok(())
        } else {
            Err(format!("{verbs:?}"))
        })
    })
    .await
}

/// Semantics 21: what is gone is deleted only when it has been gone for an interval.
#[tokio::test]
async fn what_is_gone_stays_for_one_more_interval() -> Result<()> {
    let directory = Directory::new("absent").await?;
    let stage = &directory.stage;
    let both = directory.reconciled("a", "1") + &directory.reconciled("a-2", "1");
    directory.write("a.yaml", &both)?;
    for name in ["b", "c"] {
        directory.write(&format!("{name}.yaml"), &directory.reconciled(name, "1"))?;
    }
    stage.run(&directory.line("--yes")).await?.done()?;
    directory.write("a.yaml", &directory.reconciled("a", "2"))?;
    directory.remove("c.yaml")?;
    {
        let _watch = watch(&directory, "1h")?;
        until_value(&directory, "a", Some("2")).await?;
        idle(&directory).await?;
        for name in ["a-2", "b", "c"] {
            ensure!(
                directory.value(name).await?.as_deref() == Some("1"),
                "{name}"
            );
        }
        ensure!(directory.installed().await? == ["a", "b", "c"]);
    }
    let _watch = watch(&directory, "1s")?;
    until_value(&directory, "a-2", None).await?;
    until_value(&directory, "c", None).await?;
    until("the installation is gone", async || {
        let names = directory.installed().await?;
        Ok(if names == ["a", "b"] {
            Ok(())
        } else {
            Err(format!("{names:?}"))
        })
    })
    .await
}

/// Semantics 21: only an object that another client changes again and again is repaired later and later.
#[tokio::test]
async fn an_object_that_is_edited_again_and_again_delays_no_other() -> Result<()> {
    let directory = Directory::new("delays").await?;
    let stage = &directory.stage;
    for name in ["a", "b", "c"] {
        directory.write(&format!("{name}.yaml"), &directory.reconciled(name, "1"))?;
    }
    stage.run(&directory.line("--yes")).await?.done()?;
    let _watch = watch(&directory, "1h")?;
    idle(&directory).await?;
    let edit = json!({"data": {"key": "edited"}});
    for _ in 0..3 {
        stage.patch("configmap", "a", &edit).await?;
        until_value(&directory, "a", Some("1")).await?;
    }
    // The next repair of this one is 4 s away; the others are repaired meanwhile.
    stage.patch("configmap", "a", &edit).await?;
    for name in ["b", "c"] {
        let begun = Instant::now();
        stage.delete("configmap", name).await?;
        until_value(&directory, name, Some("1")).await?;
        let took = begun.elapsed();
        ensure!(took < Duration::from_secs(4), "{name} took {took:?}");
    }
    Ok(())
}

/// Semantics 21: where the cluster cannot be watched, that is said once, and it is compared every interval.
#[tokio::test]
async fn without_a_watch_edits_are_undone_an_interval_later() -> Result<()> {
    let directory = Directory::new("unwatched").await?;
    let stage = &directory.stage;
    directory.write("a.yaml", &directory.reconciled("a", "1"))?;
    let proxy = Proxy::start(&stage.cluster)?;
    let refused = Action::Answer {
        status: 403,
        retry_after: None,
    };
    proxy.fault(Fault::always(refused).path("/api/v1/configmaps?labelSelector="));
    let path = directory.path.display().to_string();
    let args = ["sync", &*path, "--watch", "--interval", "1s", "--yes"];
    let running = Running::with(stage, proxy.kubeconfig(), &args)?;
    let unseen = "edits in the cluster are not seen at once";
    running.says(unseen).await?;
    // The second pass comes in any case: it deletes what is gone from the directory.
    for _ in 0..3 {
        let edit = json!({"data": {"key": "edited"}});
        stage.patch("configmap", "a", &edit).await?;
        until("the edit is undone", async || {
            let value = directory.value("a").await?;
            let is_undone = value.as_deref() == Some("1");
            Ok(is_undone.then_some(()).ok_or_else(|| running.said()))
        })
        .await?;
    }
    let said = running.said();
    ensure!(said.matches(unseen).count() == 1, "{said}");
    Ok(())
}
