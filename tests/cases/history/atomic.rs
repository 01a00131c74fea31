//! `upgrade --atomic`: an upgrade that fails goes back by itself to what was installed before (semantics 12).

use std::process::Command;
use std::time::Duration;

use addons_tests::chaos::rig::Rig;
use addons_tests::control_plane::binaries;
use addons_tests::denial::{When, deny};
use addons_tests::proxy::{Action, Fault};
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const ATOMIC: &str = "upgrade web --atomic --yes --timeout 6s";

/// Installs 1.0.0 of `web`; the index lists 2.0.0 then, which never gets ready and has other objects.
async fn installed(stage: &Stage) -> Result<()> {
    let good = [
        config_map("web", "good"),
        config_map("old", "1"),
        deployment("web", 1, None),
    ];
    let index = stage.index("index.yaml", &[("web", "1.0.0", &good.concat())])?;
    let line = format!("install web --channel {index} --yes");
    stage.run(&line).await?.done()?;
    let bad = [
        config_map("web", "bad"),
        config_map("added", "1"),
        deployment("web", 1, Some(&stage.namespace)),
    ];
    stage.index("index.yaml", &[("web", "2.0.0", &bad.concat())])?;
    Ok(())
}

/// That 1.0.0 is installed again, and nothing of 2.0.0 is left.
async fn is_back(stage: &Stage) -> Result<()> {
    let map = stage.must("configmap", "web").await?;
    ensure!(map["data"]["key"] == "good", "{map}");
    ensure!(stage.has("configmap", "old").await?, "old was pruned");
    ensure!(!stage.has("configmap", "added").await?, "added is left");
    let record = stage.record("web").await?;
    let (spec, status) = (&record["spec"], &record["status"]);
    ensure!(status["phase"] == "Ready", "{status}");
    ensure!(status["operation"].is_null(), "{status}");
    ensure!(status["installed"]["version"] == "1.0.0", "{status}");
    ensure!(spec["addonRef"]["version"] == "1.0.0", "{spec}");
    Ok(())
}

/// The operation of the record, once it has this verb.
async fn operation(stage: &Stage, verb: &str) -> Result<Value> {
    let found = async || {
        let mut record = stage.record("web").await?;
        let operation = record["status"]["operation"].take();
        Ok(match operation["verb"] == verb {
            true => Ok(operation),
            false => Err(record.to_string()),
        })
    };
    until(verb, found).await
}

async fn history(stage: &Stage) -> Result<Vec<Value>> {
    let said = stage.run("history web -o json").await?.done()?;
    let found: Value = serde_json::from_str(&said.stdout)?;
    Ok(found["items"].as_array().context("no items")?.clone())
}

#[tokio::test]
async fn what_is_not_ready_in_time_goes_back_under_the_same_lock() -> Result<()> {
    let mut tally = Tally::new("history::atomic::goes_back");
    let rig = Rig::new("atomic").await?;
    let stage = &rig.stage;
    installed(stage).await?;
    let before = stage.must("configmap", "old").await?;
    let mark = stage.cluster.audit().mark()?;
    let said = stage.run("upgrade web --atomic --dry-run").await?.done()?;
    let told = "if it fails, it goes back to 1.0.0 (revision 1)";
    ensure!(said.stderr.contains(told), "{}", said.stderr);
    ensure!(stage.requests(mark)?.writes("kubectl-addons") == 0);
    tally.ran();

    // The second apply of it is that of the way back.
    let slow = Fault::at(2, Action::Delay(Duration::from_secs(2)));
    let slow = slow.method("PATCH").path("/configmaps/web").writes();
    rig.proxy.fault(slow);
    let line: Vec<&str> = ATOMIC.split(' ').collect();
    let mut process = rig.through.start(&line)?;
    let upgrade = operation(stage, "upgrade").await?;
    let rollback = operation(stage, "rollback").await?;
    ensure!(upgrade["id"] == rollback["id"], "{upgrade} {rollback}");
    ensure!(rollback["target"]["version"] == "1.0.0", "{rollback}");
    let ended = tokio::task::spawn_blocking(move || process.wait()).await??;
    let said = std::fs::read_to_string(rig.through.home().join("stderr"))?;
    ensure!(ended.code() == Some(3), "{ended:?}: {said}");
    for text in [
        "web 2.0.0 is not done",
        "going back:",
        "web 1.0.0 into",
        "web went back to 1.0.0 (revision 1)",
    ] {
        ensure!(said.contains(text), "{text:?}: {said}");
    }
    tally.ran();

    is_back(stage).await?;
    let after = stage.must("configmap", "old").await?;
    ensure!(before == after, "{before}\n{after}");
    let all = history(stage).await?;
    let rows = json!(
        all.iter()
            .map(|one| [&one["revision"], &one["verb"]])
            .collect::<Vec<_>>()
    );
    let expected = json!([[3, "rollback"], [2, "upgrade"], [1, "install"]]);
    ensure!(rows == expected, "{all:?}");
    ensure!(
        all[0]["rollbackTo"] == 1 && all[0]["outcome"] == "done",
        "{all:?}"
    );
    ensure!(all[1]["version"] == "2.0.0", "{all:?}");
    let outcome = all[1]["outcome"].as_str().unwrap_or_default();
    ensure!(outcome.contains("Deployment"), "{all:?}");
    tally.ran();

    // The index still lists 2.0.0, and a loop does not take it.
    stage.run("reconcile web").await?.done()?;
    is_back(stage).await?;
    let said = stage.run("upgrade web --atomic --wait=false --yes").await?;
    let said = said.ended(2)?.stderr;
    ensure!(said.contains("leave out --wait=false"), "{said}");
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn each_that_fails_goes_back_and_the_others_stay_upgraded() -> Result<()> {
    let stage = Stage::new("atomic-some").await?;
    let (web, shop) = (config_map("web", "good"), config_map("shop", "1"));
    let entries = [("web", "1.0.0", web.as_str()), ("shop", "1.0.0", &shop)];
    let index = stage.index("index.yaml", &entries)?;
    let line = format!("install web shop --channel {index} --yes");
    stage.run(&line).await?.done()?;
    let web = [config_map("web", "bad"), config_map("denied", "2")].concat();
    deny(&stage, When::Executed, &["CREATE"], "denied", "not today").await?;
    let shop = config_map("shop", "2");
    let entries = [("web", "2.0.0", web.as_str()), ("shop", "2.0.0", &shop)];
    stage.index("index.yaml", &entries)?;
    let said = stage.run("upgrade web shop --atomic --yes").await?;
    let said = said.ended(6)?.stderr;
    for text in ["shop 2.0.0 upgraded", "web went back to 1.0.0 (revision 1)"] {
        ensure!(said.contains(text), "{text:?}: {said}");
    }
    for (name, value, version) in [("web", "good", "1.0.0"), ("shop", "2", "2.0.0")] {
        let map = stage.must("configmap", name).await?;
        ensure!(map["data"]["key"] == value, "{map}");
        let status = &stage.record(name).await?["status"];
        ensure!(status["installed"]["version"] == version, "{status}");
        ensure!(status["phase"] == "Ready", "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn what_has_no_revision_stays_as_it_failed_and_what_lasts_is_named() -> Result<()> {
    let mut tally = Tally::new("history::atomic::what_has_no_revision");
    let stage = Stage::new("atomic-plain").await?;
    installed(&stage).await?;
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: move}\nspec:\n  template:\n    spec: {restartPolicy: Never, \
               containers: [{name: main, image: 'example.test/move:1'}]}\n---\n";
    let index = stage.index("index.yaml", &[("web", "3.0.0", job)])?;
    let line = format!("upgrade web --channel {index} --atomic --dry-run");
    let said = stage.run(&line).await?.done()?.stderr;
    let lasting = "lasting   ";
    let job = "Job move runs: its effects remain";
    ensure!(said.contains(lasting) && said.contains(job), "{said}");
    tally.ran();

    let bad = [
        config_map("web", "bad"),
        deployment("web", 1, Some(&stage.namespace)),
    ];
    stage.index("index.yaml", &[("web", "2.0.0", &bad.concat())])?;
    stage
        .kubectl(&["delete", "controllerrevisions", "--all"])
        .await?;
    let said = stage.run(ATOMIC).await?.ended(3)?.stderr;
    let told = "no revision of the installed version is kept";
    ensure!(said.contains(told) && !said.contains("went back"), "{said}");
    let record = stage.record("web").await?;
    ensure!(record["status"]["phase"] == "Failed", "{record}");
    let map = stage.must("configmap", "web").await?;
    ensure!(map["data"]["key"] == "bad", "{map}");
    tally.ran();
    Ok(())
}

/// Going back prunes what the upgrade added, and an object that existed before it is none of that.
#[tokio::test]
async fn what_takes_over_an_object_is_not_begun() -> Result<()> {
    let stage = Stage::new("atomic-adopt").await?;
    installed(&stage).await?;
    stage
        .kubectl(&["create", "configmap", "added", "--from-literal=key=theirs"])
        .await?;
    let uid = stage.must("configmap", "added").await?["metadata"]["uid"].take();
    let said = stage.run(&format!("{ATOMIC} --adopt")).await?.ended(1)?;
    let told = "the upgrade takes over";
    ensure!(said.stderr.contains(told), "{}", said.stderr);
    ensure!(said.stderr.contains("without --atomic"), "{}", said.stderr);
    let map = stage.must("configmap", "added").await?;
    ensure!(
        map["metadata"]["uid"] == uid && map["data"]["key"] == "theirs",
        "{map}"
    );
    let record = stage.record("web").await?;
    ensure!(
        record["status"]["installed"]["version"] == "1.0.0",
        "{record}"
    );
    ensure!(record["status"]["operation"].is_null(), "{record}");
    Ok(())
}

#[tokio::test]
async fn an_interruption_stops_it_and_names_the_rollback() -> Result<()> {
    let stage = Stage::new("atomic-stopped").await?;
    installed(&stage).await?;
    let line = "upgrade web --atomic --yes --timeout 120s";
    let mut process = stage.plugin.start(&line.split(' ').collect::<Vec<_>>())?;
    operation(&stage, "upgrade").await?;
    let sent = Command::new("kill")
        .args(["-INT", "--", &process.id().to_string()])
        .status()?;
    ensure!(sent.success());
    let ended = tokio::task::spawn_blocking(move || process.wait()).await??;
    let said = std::fs::read_to_string(stage.plugin.home().join("stderr"))?;
    ensure!(ended.code() == Some(130), "{ended:?}: {said}");
    let back = format!("kubectl addons rollback web 1 -n {}", stage.namespace);
    ensure!(said.contains(&back), "{said}");
    // Without a number as well: nothing is kept of what was interrupted.
    let rollback = "rollback web --yes --no-wait-lock";
    stage.run(rollback).await?.done()?;
    is_back(&stage).await
}

/// Killed with `kill -9`: on the way back the next reconciliation goes on with it, before that a rollback takes the upgrade back.
#[tokio::test]
async fn a_crash_loses_nothing() -> Result<()> {
    let mut tally = Tally::new("history::atomic::a_crash");
    for (patch, verb, next) in [
        (1, "upgrade", "rollback web --yes --steal-lock"),
        (2, "rollback", "rollback web --yes --steal-lock"),
        (2, "rollback", "reconcile web"),
    ] {
        let rig = Rig::new("atomic-crash").await?;
        let stage = &rig.stage;
        installed(stage).await?;
        let stop = Fault::at(patch, Action::Stop { delivered: true });
        let stop = stop.method("PATCH").path("/configmaps/web").writes();
        ensure!(rig.run_until(ATOMIC, stop).await?, "it was not stopped");
        operation(stage, verb).await?;
        stage.run(next).await?.done()?;
        is_back(stage).await?;
        tally.ran();
    }
    Ok(())
}

/// The rendering of the way back has the whole time again: that of the upgrade is used up.
#[tokio::test]
async fn a_chart_goes_back_as_well() -> Result<()> {
    let stage = Stage::new("atomic-chart").await?;
    stage.run("init").await?.done()?;
    let shelf = Shelf::new()?;
    let offer = |version: &str, manifest: &str| {
        let packed = shelf.chart("web", version, &[("templates/all.yaml", manifest)])?;
        let version = json!({
            "version": version, "template": {"method": "helm"}, "defaultNamespace": stage.namespace,
            "source": {"url": {"manifest": packed}},
        });
        stage.catalogue("web", &version)
    };
    let good = config_map("web", "good") + &deployment("web", 1, None);
    let file = offer("1.0.0", &good)?;
    let helm = format!("--helm-bin {}", binaries::helm()?.display());
    let install = format!("install web --channel {} --yes {helm}", file.display());
    stage.run(&install).await?.done()?;
    let bad = config_map("web", "bad") + &deployment("web", 1, Some(&stage.namespace));
    offer("2.0.0", &bad)?;
    let said = stage.run(&format!("{ATOMIC} {helm}")).await?.ended(3)?;
    ensure!(!said.stderr.contains("did not go back"), "{}", said.stderr);
    let map = stage.must("configmap", "web").await?;
    ensure!(map["data"]["key"] == "good", "{map}");
    Ok(())
}
