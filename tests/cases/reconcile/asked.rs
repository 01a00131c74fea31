//! What the loop does not do by itself: a person resolves it by the command that the condition names, and meanwhile nothing is tried
//! all the time (semantics 20).

use std::time::Duration;

use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;

/// A definition with these versions, the last of which is stored, and one field.
fn definition(stage: &Stage, scope: &str, versions: &[&str], field: &str) -> String {
    let group = group(stage);
    let of = |version: &&str| {
        let spec = json!({"type": "object", "properties": {field: {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let storage = versions.last() == Some(version);
        json!({"name": version, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("policies.{group}")},
        "spec": {
            "group": group, "scope": scope,
            "names": {"kind": "Policy", "plural": "policies", "singular": "policy"},
            "versions": versions.iter().map(of).collect::<Vec<_>>(),
        },
    });
    format!("{definition}\n---\n")
}

fn group(stage: &Stage) -> String {
    format!("{}.example.test", stage.namespace)
}

/// An object of that definition.
async fn policy(stage: &Stage, version: &str) -> Result<()> {
    let policy = json!({
        "apiVersion": format!("{}/{version}", group(stage)), "kind": "Policy",
        "metadata": {"name": "one"}, "spec": {"size": 1},
    });
    stage.apply(&policy.to_string()).await
}

/// Installs `set` from an index that then has another version of it.
async fn upgraded(stage: &Stage, first: &str, second: &str) -> Result<()> {
    let index = stage.index("index.yaml", &[("set", "1.0.0", first)])?;
    let install = format!("install set --channel {index} --yes");
    stage.run(&install).await?.done()?;
    stage.index("index.yaml", &[("set", "1.1.0", second)])?;
    Ok(())
}

/// The raised condition of a record.
async fn raised(stage: &Stage, name: &str, r#type: &str) -> Result<Value> {
    let record = stage.record(name).await?;
    let all = record["status"]["conditions"].as_array();
    let found = all
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == r#type && condition["status"] == "True");
    found
        .cloned()
        .with_context(|| format!("no {}: {}", r#type, record["status"]))
}

/// `set` needs a person for this reason, nothing else is written, and the command of the message resolves it.
async fn resolves(stage: &Stage, reason: &str, flag: &str) -> Result<()> {
    let said = stage.run("reconcile").await?;
    ensure!(said.code != 0, "{reason}: it was done: {}", said.stderr);
    let asked = raised(stage, "set", "NeedsConfirmation").await?;
    ensure!(asked["reason"] == reason, "{reason}: {asked}");
    let mark = stage.cluster.audit().mark()?;
    stage.run("reconcile").await?;
    let writes = stage.requests(mark)?.writes("kubectl-addons");
    ensure!(writes == 0, "{reason}: {writes} writes");
    let message = asked["message"].as_str().unwrap_or_default();
    let (_, accept) = message
        .split_once("accept: kubectl addons ")
        .with_context(|| format!("{reason}: no way out: {message}"))?;
    ensure!(accept.contains(flag), "{reason}: {message}");
    stage.run(&format!("{accept} --yes")).await?.done()?;
    let said = stage.run("reconcile").await?.done()?;
    ensure!(said.stderr.contains("up to date"), "{}", said.stderr);
    let left = raised(stage, "set", "NeedsConfirmation").await;
    ensure!(left.is_err(), "{reason}: it is still raised: {left:?}");
    Ok(())
}

#[tokio::test]
async fn a_definition_that_breaks_objects_waits_for_a_person() -> Result<()> {
    let stage = super::stage("asked-breakage").await?;
    let of = |field| definition(&stage, "Namespaced", &["v1"], field);
    let index = stage.index("index.yaml", &[("set", "1.0.0", &of("size"))])?;
    let install = format!("install set --channel {index} --yes");
    stage.run(&install).await?.done()?;
    policy(&stage, "v1").await?;
    stage.index("index.yaml", &[("set", "1.1.0", &of("weight"))])?;
    resolves(&stage, "Breakage", "--allow-crd-breakage").await
}

#[tokio::test]
async fn a_migration_of_stored_objects_waits_for_a_person() -> Result<()> {
    let stage = super::stage("asked-migration").await?;
    let of = |version| definition(&stage, "Namespaced", &[version], "size");
    let index = stage.index("index.yaml", &[("set", "1.0.0", &of("v1alpha1"))])?;
    let install = format!("install set --channel {index} --yes");
    stage.run(&install).await?.done()?;
    policy(&stage, "v1alpha1").await?;
    stage.index("index.yaml", &[("set", "1.1.0", &of("v1"))])?;
    resolves(&stage, "Migration", "--migrate-stored-versions").await
}

#[tokio::test]
async fn a_recreation_waits_for_a_person() -> Result<()> {
    let stage = super::stage("asked-recreation").await?;
    let first = deployment("web", 1, None);
    let second = first.replace("{app: web}", "{app: other}");
    upgraded(&stage, &first, &second).await?;
    resolves(&stage, "Recreation", "--recreate Deployment/web").await
}

#[tokio::test]
async fn a_downgrade_waits_for_a_person() -> Result<()> {
    let stage = super::stage("asked-downgrade").await?;
    let (old, new) = (config_map("one", "1"), config_map("one", "2"));
    let entries = [("set", "1.0.0", &*old), ("set", "1.1.0", &*new)];
    let index = stage.index("index.yaml", &entries)?;
    let install = format!("install set@1.1.0 --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let pinned = json!({"spec": {"addonRef": {"version": "1.0.0"}}});
    stage.patch("addoninstallation", "set", &pinned).await?;
    resolves(&stage, "Downgrade", "--allow-downgrade").await?;
    let found = stage.must("configmap", "one").await?;
    ensure!(found["data"]["key"] == "1", "{found}");
    Ok(())
}

/// What cannot be done has one reason and, where there is one, a way out; then a loop tries it with growing pauses, and writes
/// nothing.
#[tokio::test]
async fn what_is_stalled_is_said_once_and_tried_less_and_less() -> Result<()> {
    // Records of other tests would be looked at, too.
    let stage = Stage::alone("stalled").await?;
    let gone = stage.index("gone.yaml", &[("gone", "1.0.0", &config_map("gone", "1"))])?;
    let down = stage.index("down.yaml", &[("down", "1.0.0", &config_map("down", "1"))])?;
    let taken = stage.index(
        "taken.yaml",
        &[("taken", "1.0.0", &config_map("taken", "1"))],
    )?;
    let first = definition(&stage, "Namespaced", &["v1"], "size");
    let fixed = stage.index("fixed.yaml", &[("fixed", "1.0.0", &first)])?;
    for (name, index) in [
        ("gone", &gone),
        ("down", &down),
        ("taken", &taken),
        ("fixed", &fixed),
    ] {
        let install = format!("install {name} --channel {index} --yes");
        stage.run(&install).await?.done()?;
    }
    policy(&stage, "v1").await?;
    stage.index(
        "gone.yaml",
        &[("other", "1.0.0", &config_map("other", "1"))],
    )?;
    std::fs::write(&down, "- it is not an index")?;
    stage.apply(&config_map("foreign", "mine")).await?;
    let more = config_map("taken", "1") + &config_map("foreign", "2");
    stage.index("taken.yaml", &[("taken", "1.1.0", &more)])?;
    let second = definition(&stage, "Cluster", &["v1"], "size");
    stage.index("fixed.yaml", &[("fixed", "1.1.0", &second)])?;

    let running = Running::reconcile(&stage, &[])?;
    running.says("leads").await?;
    for (name, reason, way) in [
        ("gone", "EntryGone", "look: kubectl addons"),
        ("down", "SourceUnavailable", "fix: kubectl addons"),
        (
            "taken",
            "Conflict",
            "accept: kubectl addons upgrade taken -n",
        ),
        ("fixed", "Breakage", ": kubectl addons"),
    ] {
        until(&format!("{name} is {reason}"), async || {
            let found = raised(&stage, name, "Stalled").await;
            let found = found.map_err(|error| format!("{error:#}"));
            Ok(found.and_then(|condition| {
                let message = condition["message"].as_str().unwrap_or_default();
                let is_said = condition["reason"] == reason && message.contains(way);
                is_said.then_some(()).ok_or_else(|| condition.to_string())
            }))
        })
        .await?;
    }
    // Failures double their pause from 2 s on: in this window each is tried twice more at most. It is time that is tested.
    sleep(Duration::from_secs(4)).await;
    let mark = stage.cluster.audit().mark()?;
    sleep(Duration::from_secs(10)).await;
    let requests = stage.requests(mark)?;
    let of_loop = requests.of("kubectl-addons");
    let mut others: Vec<_> = of_loop
        .filter(|request| request.object.resource != "leases" && request.verb != "watch")
        .collect();
    let tries = others
        .iter()
        .filter(|request| request.object.resource == "addoninstallations" && request.verb == "list")
        .count();
    ensure!(tries <= 12, "{tries} tries of 4 installations in 10 s");
    ensure!(others.len() <= 150, "{} requests in 10 s", others.len());
    others.retain(|request| request.is_write());
    ensure!(others.is_empty(), "it writes: {others:?}");
    Ok(())
}
