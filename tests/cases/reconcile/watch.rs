//! The loop: `reconcile --watch`.

use std::time::Duration;

use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// Until an object has this key.
async fn is(stage: &Stage, name: &str, value: &str) -> Result<()> {
    until(&format!("ConfigMap {name} is {value}"), async || {
        let found = stage.get("configmap", name).await?.unwrap_or_default();
        Ok((found["data"]["key"] == value)
            .then_some(())
            .ok_or_else(|| found.to_string()))
    })
    .await
}

/// Installs `set`, whose edits the loop repairs from then on.
async fn ensured(stage: &Stage, index: &str) -> Result<()> {
    stage
        .run(&format!("install set --channel {index} --yes"))
        .await?
        .done()?;
    let ensures = json!({"spec": {"reconcile": "Ensure"}});
    stage.patch("addoninstallation", "set", &ensures).await
}

/// Records are installed, newer entries followed, edits and deletions repaired; a suspended one is left alone.
#[tokio::test]
async fn the_loop_does_what_records_ask_for() -> Result<()> {
    let stage = super::stage("looped").await?;
    stage.run("init").await?.done()?;
    let set = config_map("one", "1") + &deployment("web", 1, None);
    let index = stage.index("index.yaml", &[("set", "1.0.0", &set)])?;
    let process = Running::reconcile(&stage, &["--interval", "5s"])?;
    process.says("leads").await?;
    let record = format!(
        "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonInstallation\nmetadata: {{name: set}}\n\
         spec: {{addonRef: {{name: set, index: '{index}'}}, targetNamespace: {}, reconcile: Ensure}}\n",
        stage.namespace
    );
    stage.apply(&record).await?;
    process.says("set 1.0.0 installed: 2 created").await?;

    stage
        .patch("configmap", "one", &json!({"data": {"key": "by hand"}}))
        .await?;
    is(&stage, "one", "1").await?;
    // What goes while an operation waits for it is waited for until its deadline.
    until("the repair is over", async || {
        let status = stage.record("set").await?["status"].clone();
        let is_over = status["operation"].is_null() && status["phase"] == "Ready";
        Ok(is_over.then_some(()).ok_or_else(|| status.to_string()))
    })
    .await?;
    let begun = Instant::now();
    stage.delete("deployment", "web").await?;
    until("the Deployment is back", async || {
        Ok(stage
            .has("deployment", "web")
            .await?
            .then_some(())
            .ok_or_else(|| process.said()))
    })
    .await?;
    println!(
        "reconcile::watch: a deleted Deployment was back after {:?}",
        begun.elapsed()
    );

    let newer = config_map("one", "2") + &deployment("web", 1, None);
    stage.index("index.yaml", &[("set", "1.1.0", &newer)])?;
    is(&stage, "one", "2").await?;
    process.says(" upgraded: ").await?;

    let suspend = |suspend: bool| json!({"spec": {"suspend": suspend}});
    stage
        .patch("addoninstallation", "set", &suspend(true))
        .await?;
    sleep(Duration::from_secs(1)).await;
    stage
        .patch("configmap", "one", &json!({"data": {"key": "by hand"}}))
        .await?;
    sleep(Duration::from_secs(7)).await;
    is(&stage, "one", "by hand").await?;
    stage
        .patch("addoninstallation", "set", &suspend(false))
        .await?;
    is(&stage, "one", "2").await?;

    // By now, no change comes before the watch that sees it.
    let edit = json!({"data": {"key": "by hand"}});
    stage.patch("configmap", "one", &edit).await?;
    is(&stage, "one", "2").await?;
    let edited = format!("{}/ConfigMap one was edited", stage.namespace);
    process.says(&edited).await?;
    let events = stage
        .kubectl(&["get", "events", "-o", "json"])
        .await?
        .stdout;
    ensure!(events.contains("\"Reconciled\""), "{events}");
    ensure!(events.contains("; cause: its record changed"), "{events}");
    has_logged(&stage, &process.said())
}

/// Each line of the log is JSON with time and level, and each change has a line of its own with its cause.
fn has_logged(stage: &Stage, log: &str) -> Result<()> {
    let lines: Vec<Value> = log
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .with_context(|| log.to_owned())?;
    for line in &lines {
        let is_complete = ["timestamp", "level", "message"]
            .iter()
            .all(|field| line[field].is_string());
        ensure!(is_complete, "{line}");
    }
    let installation = format!("{}/set", stage.namespace);
    let changes = lines.iter().filter(|line| line["outcome"] == "changed");
    let changes: Vec<_> = changes.collect();
    for line in &changes {
        let is_caused = line["cause"]
            .as_str()
            .is_some_and(|cause| !cause.is_empty());
        ensure!(
            is_caused && line["installation"] == installation.as_str(),
            "{line}"
        );
    }
    for cause in [
        "its record changed".to_owned(),
        format!("{}/ConfigMap one was edited", stage.namespace),
    ] {
        let mut all = changes.iter();
        let is_there = all.any(|line| line["cause"] == cause.as_str());
        ensure!(is_there, "no line with the cause {cause}: {log}");
    }
    Ok(())
}

/// What was edited or deleted of a record that asks for no repair is counted, and left as it is.
#[tokio::test]
async fn drift_that_is_not_repaired_is_told() -> Result<()> {
    let stage = super::stage("drifted").await?;
    let set = config_map("one", "1") + &config_map("two", "1");
    let index = stage.index("index.yaml", &[("set", "1.0.0", &set)])?;
    let install = format!("install set --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let address = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .to_string();
    let process = Running::reconcile(&stage, &["--health-bind", &address])?;
    process.says("leads").await?;
    let says = async |words: &str| {
        until(words, async || {
            let record = stage.record("set").await?;
            let conditions = record["status"]["conditions"].as_array().cloned();
            let mut all = conditions.into_iter().flatten();
            let drifted = all.find(|one| one["type"] == "Drifted").unwrap_or_default();
            let said = format!("{} {}", drifted["status"], drifted["message"]);
            Ok(said.contains(words).then_some(()).ok_or(said))
        })
        .await
    };
    // No change comes before the watch that sees it.
    sleep(Duration::from_secs(3)).await;
    let edit = json!({"data": {"key": "by hand"}});
    stage.patch("configmap", "one", &edit).await?;
    says("1 object edited; to restore them: kubectl addons upgrade set").await?;
    stage.delete("configmap", "two").await?;
    says("1 object edited, 1 missing").await?;
    is(&stage, "one", "by hand").await?;
    let metrics = reqwest::get(format!("http://{address}/metrics")).await?;
    let metrics = metrics.text().await?;
    let named = format!("namespace=\"{}\",name=\"set\"", stage.namespace);
    for line in [
        format!("installation_drifted_objects{{{named},differs=\"edited\"}} 1\n"),
        format!("installation_info{{{named},addon=\"set\",version=\"1.0.0\",fit=\"true\""),
        "addons_reconciler_conditions{condition=\"Drifted\",core=\"false\"} 1\n".to_owned(),
    ] {
        ensure!(metrics.contains(&line), "{line}: {metrics}");
    }
    // What is counted once costs nothing more: the status of an edited object is no news.
    let note = json!({"metadata": {"annotations": {"example.test/note": "1"}}});
    stage.patch("configmap", "one", &note).await?;
    super::is_idle_but_for_watches(&stage, Duration::from_secs(5)).await?;

    stage.run("upgrade set --repair --yes").await?.done()?;
    says("\"False\"").await
}

/// Nothing is written where nothing changed, but the Lease.
#[tokio::test]
async fn an_idle_loop_writes_nothing_but_its_lease() -> Result<()> {
    let stage = super::stage("idle").await?;
    let set = config_map("one", "1") + &deployment("web", 1, None);
    let index = stage.index(
        "index.yaml",
        &[
            ("set", "1.0.0", &set),
            ("once", "1.0.0", &config_map("once", "1")),
        ],
    )?;
    stage
        .run(&format!("install set once --channel {index} --yes"))
        .await?
        .done()?;
    stage
        .patch(
            "addoninstallation",
            "set",
            &json!({"spec": {"reconcile": "Ensure"}}),
        )
        .await?;
    let address = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .to_string();
    let process = Running::reconcile(&stage, &["--interval", "2s", "--health-bind", &address])?;
    process.says("leads").await?;
    let ready = reqwest::get(format!("http://{address}/readyz")).await?;
    ensure!(ready.status() == 200, "{ready:?}");
    // Its first look may have something to record: the spec that was changed.
    sleep(Duration::from_secs(6)).await;
    super::is_idle(&stage, Duration::from_secs(10)).await?;
    // A record of another test is counted until its namespace was looked at.
    until("the metrics are there", async || {
        let asked = reqwest::get(format!("http://{address}/metrics")).await?;
        let metrics = asked.text().await?;
        let lines = [
            "addons_reconciler_leader 1\n",
            "addons_reconciler_installations{phase=\"Ready\",core=\"false\"} 2\n",
            "addons_reconciler_conditions{condition=\"Stalled\",core=\"false\"} 0\n",
        ];
        let is_there = lines.iter().all(|line| metrics.contains(line));
        Ok(is_there.then_some(()).ok_or(metrics))
    })
    .await
}

/// The lock decides between a person and the loop: neither undoes the other, and the loop goes on afterwards.
#[tokio::test]
async fn a_person_and_the_loop_never_work_on_one_at_the_same_time() -> Result<()> {
    let stage = super::stage("fight").await?;
    let index = stage.index("index.yaml", &[("set", "1.0.0", &config_map("one", "1"))])?;
    ensured(&stage, &index).await?;
    let process = Running::reconcile(&stage, &[])?;
    process.says("leads").await?;
    for round in 0..5 {
        let value = round.to_string();
        stage.index(
            "index.yaml",
            &[("set", &format!("1.{round}.1"), &config_map("one", &value))],
        )?;
        // Where the loop was faster, the plan no longer holds, and the next one does.
        stage.run("upgrade set --yes").await?.done()?;
        is(&stage, "one", &value).await?;
        let record = stage.record("set").await?;
        ensure!(record["status"]["phase"] != "Failed", "{record}");
    }
    // A lock of a client that died is waited for, and its operation continued.
    stage.delete("configmap", "one").await?;
    until("the ConfigMap is back", async || {
        Ok(stage
            .has("configmap", "one")
            .await?
            .then_some(())
            .ok_or_else(String::new))
    })
    .await?;
    stage.lock("set", "ann@desk", 5).await?;
    stage
        .patch("configmap", "one", &json!({"data": {"key": "by hand"}}))
        .await?;
    sleep(Duration::from_secs(2)).await;
    let held = stage.record("set").await?;
    ensure!(
        held["status"]["operation"]["holder"] == "ann@desk",
        "it took a live lock: {held}"
    );
    is(&stage, "one", "4").await?;
    Ok(())
}

/// A leader that is killed is replaced within its lease; one that is asked to end gives the Lease back.
#[tokio::test]
async fn a_killed_leader_is_replaced() -> Result<()> {
    let stage = super::stage("killed").await?;
    let index = stage.index("index.yaml", &[("set", "1.0.0", &config_map("one", "1"))])?;
    ensured(&stage, &index).await?;
    let mut first = Running::reconcile(&stage, &[])?;
    first.says("leads").await?;
    let second = Running::reconcile(&stage, &[])?;
    sleep(Duration::from_secs(3)).await;
    ensure!(!second.said().contains("leads"), "{}", second.said());
    let killed = Instant::now();
    first.process.kill()?;
    stage
        .patch("configmap", "one", &json!({"data": {"key": "by hand"}}))
        .await?;
    is(&stage, "one", "1").await?;
    println!(
        "reconcile::watch: a killed leader was replaced after {:?}",
        killed.elapsed()
    );
    ensure!(
        killed.elapsed() < Duration::from_secs(25),
        "{:?}",
        killed.elapsed()
    );

    let mut second = second;
    second.ends(0)?;
    let lease = stage.must("lease", "addons-reconciler").await?;
    let holder = lease["spec"]["holderIdentity"]
        .as_str()
        .context("no holder")?;
    ensure!(holder.is_empty(), "{lease}");
    Ok(())
}

/// Semantics 20: what another manager sets back each time is left to it for a while, and said.
#[tokio::test]
async fn the_loop_does_not_fight() -> Result<()> {
    let stage = super::stage("contested").await?;
    let index = stage.index("index.yaml", &[("set", "1.0.0", &config_map("one", "1"))])?;
    ensured(&stage, &index).await?;
    let process = Running::reconcile(&stage, &[])?;
    process.says("leads").await?;
    let edit = json!({"data": {"key": "by hand"}});
    for _ in 0..3 {
        stage.patch("configmap", "one", &edit).await?;
        is(&stage, "one", "1").await?;
    }
    let contested = stage.condition("set", "Contested").await?;
    let message = contested["message"].as_str().unwrap_or_default();
    for part in ["data.key", "kubectl-patch", "kubectl-addons."] {
        ensure!(message.contains(part), "{part}: {message}");
    }
    stage.patch("configmap", "one", &edit).await?;
    sleep(Duration::from_secs(5)).await;
    is(&stage, "one", "by hand").await?;
    // A person decides.
    stage.run("upgrade set --repair --yes").await?.done()?;
    is(&stage, "one", "1").await?;
    let record = stage.record("set").await?["status"]["conditions"].to_string();
    ensure!(!record.contains("FieldTakenBack"), "{record}");
    Ok(())
}

/// Semantics 6: records that stand for other clusters are left alone, and their writers cost this loop nothing.
#[tokio::test]
async fn records_of_other_clusters_are_not_asked_about_again() -> Result<()> {
    let stage = Stage::alone("elsewhere").await?;
    stage.run("init").await?.done()?;
    let far = stage.cluster.namespace("far").await?;
    let process = Running::reconcile(&stage, &[])?;
    process.says("leads").await?;
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "set", "namespace": far}, "spec": {"addonRef": {"name": "set"}},
    });
    let apply = ["apply", "-f", "-"];
    let applied = stage
        .plugin
        .kubectl_with_input(&apply, &record.to_string())
        .await?;
    applied.done()?;
    // It is looked at once. What is tested is that nothing comes later.
    sleep(Duration::from_secs(3)).await;
    let mark = stage.cluster.audit().mark()?;
    for number in 0..5 {
        let note = format!("example.test/note={number}");
        let annotate = ["annotate", "--overwrite", "addoninstallation", "set", &note];
        let args = [&annotate[..], &["-n", &far]].concat();
        stage.plugin.kubectl(&args).await?.done()?;
        sleep(Duration::from_millis(500)).await;
    }
    let lists = stage.requests(mark)?.count("list", "kubectl-addons");
    ensure!(lists == 0, "{lists} lists");
    Ok(())
}
