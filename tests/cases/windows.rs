//! Maintenance windows of AddonPolicies: the loop waits for them, and commands ask (semantics 19.7).

use addons_tests::control_plane::Own;
use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

/// A schedule with a duration that is always open.
const OPEN: (&str, &str) = ("* * * * *", "2m");

async fn stage(what: &str) -> Result<Stage> {
    static CLUSTER: Own = Own::new();
    Stage::of_module(&CLUSTER, what).await
}

/// A window that is closed for months, and when it opens.
fn closed() -> (String, String) {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let month = (today.month() + 5) % 12 + 1;
    let year = today.year() + i16::from(month < today.month());
    let schedule = format!("0 3 1 {month} *");
    (schedule, format!("{year}-{month:02}-01T03:00:00Z"))
}

/// Writes a policy for the namespace of the stage.
async fn policy(stage: &Stage, name: &str, window: (&str, &str), more: &Value) -> Result<()> {
    let mut maintenance = json!({"windows": [{"schedule": window.0, "duration": window.1}]});
    if let Some(repairs) = more.get("repairs") {
        maintenance["repairs"] = repairs.clone();
    }
    let policy = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonPolicy",
        "metadata": {"name": format!("{}-{name}", stage.namespace)},
        "spec": {
            "action": more.get("action").cloned().unwrap_or(json!("Enforce")),
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}},
            "maintenance": maintenance,
        },
    });
    stage.apply(&policy.to_string()).await
}

async fn key(stage: &Stage, name: &str) -> Result<Value> {
    Ok(stage.must("configmap", name).await?["data"]["key"].clone())
}

/// Until the ConfigMap has this key.
async fn is(stage: &Stage, name: &str, value: &str) -> Result<()> {
    until(&format!("ConfigMap {name} is {value}"), async || {
        let found = stage.get("configmap", name).await?.unwrap_or_default();
        Ok((found["data"]["key"] == value)
            .then_some(())
            .ok_or_else(|| found.to_string()))
    })
    .await
}

/// Outside a window the loop says until when it waits, for a new installation, a newer version and a deletion; inside it begins.
#[tokio::test]
async fn the_loop_begins_inside_a_window() -> Result<()> {
    let stage = stage("windows").await?;
    stage.run("init").await?.done()?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    let install = format!("install web --channel {index} --yes");
    stage.run(&install).await?.done()?;
    let (schedule, opens) = closed();
    policy(&stage, "rare", (&schedule, "1h"), &json!({})).await?;
    let new = config_map("new", "1");
    let newer = config_map("web", "2");
    stage.index(
        "index.yaml",
        &[("web", "1.1.0", &newer), ("new", "1.0.0", &new)],
    )?;
    let process = Running::reconcile(&stage, &["--interval", "2s"])?;
    process.says("leads").await?;
    let waiting = stage.condition("web", "Waiting").await?;
    let message = waiting["message"].as_str().context("no message")?;
    ensure!(waiting["reason"] == "OutsideWindow", "{waiting}");
    ensure!(
        message.starts_with(&format!("until {opens}: ")),
        "{message}"
    );
    for part in ["upgrade to 1.1.0", "reconcile web", "--outside-window"] {
        ensure!(message.contains(part), "{part}: {message}");
    }
    ensure!(key(&stage, "web").await? == "1", "it did not wait");
    for command in ["list", "status web", "doctor"] {
        let said = stage.run(command).await?;
        let text = said.stdout.clone() + &said.stderr;
        ensure!(
            text.contains("Waiting") && text.contains(&opens),
            "{command}: {text}"
        );
    }

    // A new installation waits as well.
    let record = format!(
        "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonInstallation\nmetadata: {{name: new}}\n\
         spec: {{addonRef: {{name: new, index: '{index}'}}, targetNamespace: {}}}\n",
        stage.namespace
    );
    stage.apply(&record).await?;
    stage.condition("new", "Waiting").await?;
    ensure!(!stage.has("configmap", "new").await?, "it did not wait");
    // Nothing of it is there, so its deletion does not wait.
    stage.delete("addoninstallation", "new").await?;

    // An edit of what is installed is repaired.
    let ensures = json!({"spec": {"reconcile": "Ensure", "addonRef": {"version": "1.0.0"}}});
    let older = config_map("web", "1");
    stage.index(
        "index.yaml",
        &[("web", "1.0.0", &older), ("web", "1.1.0", &newer)],
    )?;
    stage.patch("addoninstallation", "web", &ensures).await?;
    let edit = json!({"data": {"key": "by hand"}});
    stage.patch("configmap", "web", &edit).await?;
    is(&stage, "web", "1").await?;

    let follow = json!({"spec": {"addonRef": {"version": null}}});
    stage.patch("addoninstallation", "web", &follow).await?;
    stage.condition("web", "Waiting").await?;
    policy(&stage, "rare", OPEN, &json!({})).await?;
    is(&stage, "web", "2").await?;
    until("nothing waits", async || {
        let record = stage.record("web").await?;
        let conditions = record["status"]["conditions"].as_array().cloned();
        let mut all = conditions.iter().flatten();
        let waits = all.any(|one| one["type"] == "Waiting" && one["status"] == "True");
        Ok((!waits).then_some(()).ok_or_else(|| record.to_string()))
    })
    .await
}

/// A command refuses without a terminal, and says what accepts it; what only shows a plan says so and ends well. Several policies have to
/// be open together.
#[tokio::test]
async fn a_command_begins_outside_a_window_if_asked() -> Result<()> {
    let stage = stage("asked").await?;
    stage.run("init").await?.done()?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    let (schedule, opens) = closed();
    policy(&stage, "open", OPEN, &json!({})).await?;
    let install = format!("install web --channel {index} --yes");
    stage.run(&install).await?.done()?;
    policy(&stage, "rare", (&schedule, "1h"), &json!({})).await?;
    stage.index("index.yaml", &[("web", "1.1.0", &config_map("web", "2"))])?;

    let refused = stage.run("upgrade web --yes").await?.ended(6)?;
    let outside = format!(
        "upgrade to 1.1.0 has to wait until {opens}: outside the maintenance windows of AddonPolicy {}-rare",
        stage.namespace
    );
    for part in [
        &outside,
        "accept: kubectl addons upgrade web",
        " --outside-window",
    ] {
        ensure!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    let shown = stage.run("upgrade web --dry-run").await?.done()?;
    ensure!(shown.stderr.contains(&outside), "{}", shown.stderr);
    let planned = stage.run("plan web").await?.done()?;
    ensure!(planned.stderr.contains(&outside), "{}", planned.stderr);
    let passed = stage.run("reconcile").await?.done()?;
    ensure!(
        passed.stderr.contains(&format!("web  waits until {opens}")),
        "{}",
        passed.stderr
    );
    stage.run("uninstall web --yes").await?.ended(6)?;
    ensure!(key(&stage, "web").await? == "1", "it did not wait");
    stage
        .run("upgrade web --yes --outside-window")
        .await?
        .done()?;
    ensure!(key(&stage, "web").await? == "2", "it was asked for");

    // Repairs go on, unless the policy says otherwise.
    let edit = json!({"data": {"key": "by hand"}});
    stage.patch("configmap", "web", &edit).await?;
    stage.run("upgrade web --repair --yes").await?.done()?;
    ensure!(key(&stage, "web").await? == "2", "it was not repaired");
    let in_window = json!({"repairs": "InWindow"});
    policy(&stage, "rare", (&schedule, "1h"), &in_window).await?;
    stage.patch("configmap", "web", &edit).await?;
    let refused = stage.run("upgrade web --repair --yes").await?.ended(6)?;
    ensure!(
        refused.stderr.contains("a repair has to wait"),
        "{}",
        refused.stderr
    );

    // A policy that only warns holds nothing back.
    let warn = json!({"action": "Warn"});
    policy(&stage, "rare", (&schedule, "1h"), &warn).await?;
    let warned = stage.run("rollback web --yes").await?.done()?;
    ensure!(
        warned.stderr.contains("maintenance windows"),
        "{}",
        warned.stderr
    );
    policy(&stage, "rare", (&schedule, "1h"), &json!({})).await?;
    stage.run("reconcile web --outside-window").await?.done()?;
    stage
        .run("uninstall web --yes --outside-window")
        .await?
        .done()?;
    Ok(())
}
