//! One pass over all installations.

use addons_tests::stage::config_map;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// The condition of a record.
fn condition<'a>(record: &'a Value, r#type: &str) -> Result<&'a Value> {
    let mut all = record["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    all.find(|condition| condition["type"] == r#type)
        .with_context(|| format!("no condition {}: {}", r#type, record["status"]))
}

fn key(object: &Value) -> &str {
    object["data"]["key"].as_str().unwrap_or_default()
}

/// A record as a person writes it, of an index.
fn record(name: &str, index: &str, namespace: &str, more: &str) -> String {
    format!(
        "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonInstallation\nmetadata: {{name: {name}}}\n\
         spec: {{addonRef: {{name: {name}, index: '{index}'}}, targetNamespace: {namespace}{more}}}\n---\n"
    )
}

/// Records that were written by hand are installed, in the order of what requires what; then nothing is written.
#[tokio::test]
async fn records_written_by_hand_are_installed_and_kept_as_they_are() -> Result<()> {
    let stage = super::stage("handmade").await?;
    stage.run("init").await?.done()?;
    let index = stage.index(
        "index.yaml",
        &[
            ("base", "1.0.0", &config_map("base", "1")),
            ("web", "1.0.0", &config_map("web", "1")),
        ],
    )?;
    let namespace = &stage.namespace;
    let written = record("base", &index, namespace, "") + &record("web", &index, namespace, "");
    stage.apply(&written).await?;
    let spec = stage.record("web").await?["spec"].clone();

    let said = stage.run("reconcile").await?.done()?;
    ensure!(
        said.stderr.matches(" installed: 1 created").count() == 2,
        "{}",
        said.stderr
    );
    ensure!(stage.has("configmap", "web").await?, "it was not installed");
    let now = stage.record("web").await?;
    ensure!(
        now["spec"] == spec,
        "the spec was written: {} {spec}",
        now["spec"]
    );
    ensure!(now["status"]["installed"]["version"] == "1.0.0", "{now}");
    let ready = condition(&now, "Ready")?;
    ensure!(
        ready["status"] == "True" && ready["observedGeneration"] == now["metadata"]["generation"],
        "{ready}"
    );

    let mark = stage.cluster.audit().mark()?;
    let again = stage.run("reconcile").await?.done()?;
    // Other tests of the module may have records in labelled namespaces.
    for name in ["base", "web"] {
        let line = format!("{name}  up to date");
        ensure!(again.stderr.contains(&line), "{}", again.stderr);
    }
    ensure!(
        stage.requests(mark)?.writes("kubectl-addons") == 0,
        "it wrote something"
    );
    Ok(())
}

/// Semantics 12: a record that names no version follows, a pinned one stays; `Ensure` is repaired, `Once` where it is named.
#[tokio::test]
async fn what_is_pinned_stays_and_what_is_named_is_repaired() -> Result<()> {
    let stage = super::stage("pinned").await?;
    let entries = |version: &str| -> Result<String> {
        stage.index(
            "index.yaml",
            &[
                ("free", version, &config_map("free", version)),
                ("held", version, &config_map("held", version)),
            ],
        )
    };
    let index = entries("1.0.0")?;
    stage
        .run(&format!("install free held@1.0.0 --channel {index} --yes"))
        .await?
        .done()?;
    for (name, version) in [("free", Value::Null), ("held", json!("1.0.0"))] {
        let reference = stage.record(name).await?["spec"]["addonRef"].clone();
        ensure!(reference["version"] == version, "{reference}");
    }
    let newer = [
        ("free", "1.0.0", &*config_map("free", "1.0.0")),
        ("held", "1.0.0", &*config_map("held", "1.0.0")),
        ("free", "1.1.0", &*config_map("free", "1.1.0")),
        ("held", "1.1.0", &*config_map("held", "1.1.0")),
    ];
    stage.index("index.yaml", &newer)?;
    stage.run("reconcile").await?.done()?;
    ensure!(
        key(&stage.must("configmap", "free").await?) == "1.1.0",
        "it did not follow"
    );
    ensure!(
        key(&stage.must("configmap", "held").await?) == "1.0.0",
        "it is pinned"
    );

    for name in ["free", "held"] {
        stage
            .patch("configmap", name, &json!({"data": {"key": "by hand"}}))
            .await?;
    }
    stage
        .patch(
            "addoninstallation",
            "free",
            &json!({"spec": {"reconcile": "Ensure"}}),
        )
        .await?;
    stage.run("reconcile").await?.done()?;
    ensure!(
        key(&stage.must("configmap", "free").await?) == "1.1.0",
        "Ensure was not repaired"
    );
    ensure!(
        key(&stage.must("configmap", "held").await?) == "by hand",
        "Once was repaired"
    );
    stage.run("reconcile held").await?.done()?;
    ensure!(
        key(&stage.must("configmap", "held").await?) == "1.0.0",
        "it was named"
    );

    // What a reconciler wrote of it before goes with its cause, although nothing has to be done.
    stage.write("held-1.0.0-1.yaml", "changed: true")?;
    stage.run("reconcile held").await?.ended(1)?;
    stage.condition("held", "Stalled").await?;
    stage.write("held-1.0.0-1.yaml", &config_map("held", "1.0.0"))?;
    let said = stage.run("reconcile held").await?.done()?;
    ensure!(said.stderr.contains("held  up to date"), "{}", said.stderr);
    let held = stage.record("held").await?;
    ensure!(condition(&held, "Stalled")?["status"] == "False", "{held}");

    // An upgrade by hand moves what is pinned.
    stage.run("upgrade held --yes").await?.done()?;
    let reference = stage.record("held").await?["spec"]["addonRef"].clone();
    ensure!(reference["version"] == "1.1.0", "{reference}");
    Ok(())
}

/// What cannot be done is one condition with a reason and a way out, written once; it stops no other and goes with its cause.
#[tokio::test]
async fn what_cannot_be_done_is_a_condition() -> Result<()> {
    let stage = super::stage("conditions").await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    let gone = stage.index("gone.yaml", &[("lost", "1.0.0", &config_map("lost", "1"))])?;
    stage
        .run(&format!("install web --channel {index} --yes"))
        .await?
        .done()?;
    stage
        .run(&format!("install lost --channel {gone} --yes"))
        .await?
        .done()?;
    let text = std::fs::read_to_string(&gone)?;
    std::fs::write(&gone, "- it is not an index")?;
    stage.index("index.yaml", &[("web", "1.1.0", &config_map("web", "2"))])?;

    let said = stage.run("reconcile").await?.ended(1)?;
    ensure!(
        said.stderr
            .contains("the index or folder that it comes from cannot be read"),
        "{}",
        said.stderr
    );
    ensure!(
        key(&stage.must("configmap", "web").await?) == "2",
        "one failure stopped another"
    );
    let record = stage.record("lost").await?;
    let stalled = condition(&record, "Stalled")?;
    ensure!(
        stalled["status"] == "True" && stalled["reason"] == "SourceUnavailable",
        "{stalled}"
    );
    ensure!(
        stalled["observedGeneration"] == record["metadata"]["generation"],
        "{stalled}"
    );
    let message = stalled["message"].as_str().unwrap_or_default();
    ensure!(message.contains("; fix: kubectl addons"), "{message}");
    ensure!(
        condition(&record, "Ready")?["status"] == "True",
        "it is still installed"
    );
    let listed = stage.run("list").await?.done()?;
    ensure!(listed.stdout.contains("Stalled"), "{}", listed.stdout);

    let mark = stage.cluster.audit().mark()?;
    stage.run("reconcile").await?.ended(1)?;
    ensure!(
        stage.requests(mark)?.writes("kubectl-addons") == 0,
        "the condition was written again"
    );
    std::fs::write(&gone, text)?;
    stage.run("reconcile").await?.done()?;
    let record = stage.record("lost").await?;
    ensure!(
        condition(&record, "Stalled")?["status"] == "False",
        "{record}"
    );
    Ok(())
}

/// A protection asks a person: the condition names the command that accepts it, and that command resolves it.
#[tokio::test]
async fn a_protection_waits_for_a_person() -> Result<()> {
    let stage = super::stage("protected").await?;
    let maps = |count: usize| -> String {
        (0..count)
            .map(|i| config_map(&format!("map-{i}"), "1"))
            .collect()
    };
    let index = stage.index("index.yaml", &[("many", "1.0.0", &maps(12))])?;
    stage
        .run(&format!("install many --channel {index} --yes"))
        .await?
        .done()?;
    stage.index("index.yaml", &[("many", "1.1.0", &maps(2))])?;

    stage.run("reconcile").await?.ended(1)?;
    ensure!(stage.has("configmap", "map-11").await?, "it was pruned");
    let record = stage.record("many").await?;
    let asked = condition(&record, "NeedsConfirmation")?;
    ensure!(
        asked["status"] == "True" && asked["reason"] == "PruneLimit",
        "{asked}"
    );
    let message = asked["message"].as_str().unwrap_or_default();
    let (_, accept) = message
        .split_once("accept: kubectl addons ")
        .context("no way out")?;
    stage.run(&format!("{accept} --yes")).await?.done()?;
    ensure!(
        !stage.has("configmap", "map-11").await?,
        "it was not pruned"
    );
    let record = stage.record("many").await?;
    ensure!(
        condition(&record, "NeedsConfirmation")?["status"] == "False",
        "{record}"
    );
    Ok(())
}

/// An operation that was cut off is continued, one of a living client is not; what is suspended is left alone.
#[tokio::test]
async fn interrupted_operations_are_continued() -> Result<()> {
    let stage = super::stage("resumed").await?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    stage
        .run(&format!("install web --channel {index} --yes"))
        .await?
        .done()?;
    stage.delete("configmap", "web").await?;
    stage.lock("web", "ann@desk", 20).await?;
    stage
        .patch(
            "addoninstallation",
            "web",
            &json!({"spec": {"suspend": true}}),
        )
        .await?;
    let said = stage.run("reconcile").await?.done()?;
    ensure!(said.stderr.contains("suspended"), "{}", said.stderr);
    ensure!(!stage.has("configmap", "web").await?, "it is suspended");
    stage
        .patch(
            "addoninstallation",
            "web",
            &json!({"spec": {"suspend": false}}),
        )
        .await?;
    stage.run("reconcile").await?.done()?;
    ensure!(stage.has("configmap", "web").await?, "it was not continued");
    ensure!(
        stage.record("web").await?["status"]["operation"].is_null(),
        "it is still locked"
    );
    Ok(())
}

/// Semantics 15: what our finalizer holds is uninstalled, or left with `Orphan`; what another one holds is left alone.
#[tokio::test]
async fn deletions_are_finished() -> Result<()> {
    let stage = super::stage("finished").await?;
    let names = ["mine", "kept", "other"];
    let maps = names.map(|name| config_map(name, "1"));
    let entries: Vec<_> = names
        .iter()
        .zip(&maps)
        .map(|(name, map)| (*name, "1.0.0", map.as_str()))
        .collect();
    let index = stage.index("index.yaml", &entries)?;
    stage
        .run(&format!("install mine kept other --channel {index} --yes"))
        .await?
        .done()?;
    for (name, finalizer, policy) in [
        ("mine", "kubectl-addons.dev/uninstall", "Delete"),
        ("kept", "kubectl-addons.dev/uninstall", "Orphan"),
        ("other", "example.test/other", "Delete"),
    ] {
        let patch =
            json!({"metadata": {"finalizers": [finalizer]}, "spec": {"deletionPolicy": policy}});
        stage.patch("addoninstallation", name, &patch).await?;
        stage
            .kubectl(&["delete", "addoninstallation", name, "--wait=false"])
            .await?;
    }
    stage.run("reconcile").await?.done()?;
    for (name, record, object) in [
        ("mine", false, false),
        ("kept", false, true),
        ("other", true, true),
    ] {
        ensure!(
            stage.has("addoninstallation", name).await? == record,
            "the record of {name}"
        );
        ensure!(
            stage.has("configmap", name).await? == object,
            "the object of {name}"
        );
    }
    stage
        .patch(
            "addoninstallation",
            "other",
            &json!({"metadata": {"finalizers": null}}),
        )
        .await?;
    until("the record is gone", async || {
        let is_there = stage.has("addoninstallation", "other").await?;
        Ok((!is_there)
            .then_some(())
            .ok_or_else(|| "it is there".to_owned()))
    })
    .await
}
