//! What AddonPolicies allow, as each layer says it: `kubectl addons`, the reconciler, the webhook, and the policies of deploy/policies
//! while no webhook is there (semantics 19). The rows are in `data/policy`.

mod definition;
mod hosts;
mod row;
mod world;

use addons_tests::plugin::Output;
use addons_tests::raw::Answer;
use addons_tests::tally::Tally;
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use self::row::{Layer, Row, Said};
use self::world::World;

/// One cluster for all layers: every attempt is a dry run, but for the pass of the reconciler.
#[tokio::test]
async fn each_layer_says_what_the_policies_allow() -> Result<()> {
    let mut tally = Tally::new("policy::table");
    let world = World::new().await?;
    let mut wrong = Vec::new();
    plugin(&world, &mut wrong).await?;
    tally.ran();
    reconciler(&world, &mut wrong).await?;
    tally.ran();
    let webhook = Webhook::start(&world.cluster, &[]).await?;
    world.in_force().await?;
    raw(&world, Layer::Webhook, &mut wrong).await?;
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    recorded(&world, &webhook).await?;
    changed(&world, Layer::Webhook).await?;
    tally.ran();
    webhook.stop(&world.cluster).await?;
    statically(&world).await?;
    raw(&world, Layer::Static, &mut wrong).await?;
    changed(&world, Layer::Static).await?;
    tally.ran();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Notes a row of which a layer says something else.
fn compare(row: &Row, layer: Layer, found: &Said, text: &str, wrong: &mut Vec<String>) {
    let expected = row.expected(layer);
    let is_right = match (&expected, found) {
        (Said::Nothing, Said::Nothing) => true,
        (Said::Denied(words), Said::Denied(text)) | (Said::Warned(words), Said::Warned(text)) => {
            text.contains(words)
        }
        _ => false,
    };
    if !is_right {
        let (says, name) = (&row.says, &row.name);
        wrong.push(format!(
            "{layer:?}: {says} ({name}): {found:?} instead of {expected:?}\n{text}"
        ));
    }
}

/// `kubectl addons install --dry-run` as the user of the row.
async fn plugin(world: &World, wrong: &mut Vec<String>) -> Result<()> {
    for row in world
        .rows
        .iter()
        .filter(|row| row.is_tried(Layer::Plugin) && row.change.is_none())
    {
        let reference = &row.install["addonRef"];
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let mut args = vec!["install", text("name"), "--name=tried", "-n", &row.name];
        args.extend(["--target-namespace", &row.name, "--dry-run=client"]);
        for (flag, field) in [("--catalogue", "catalogue"), ("--channel", "index")] {
            if !text(field).is_empty() {
                args.extend([flag, text(field)]);
            }
        }
        let said = world.plugin(row.who)?.run(&args).await?;
        let found = told(&said)?;
        compare(row, Layer::Plugin, &found, &said.stderr, wrong);
    }
    Ok(())
}

/// What a command says of policies: 6 is a denial.
fn told(said: &Output) -> Result<Said> {
    let is_named = said.stderr.contains("AddonPolicy");
    Ok(match said.code {
        6 => Said::Denied(said.stderr.clone()),
        0 if is_named => Said::Warned(said.stderr.clone()),
        0 => Said::Nothing,
        code => anyhow::bail!("exit code {code}: {}", said.stderr),
    })
}

/// One pass over what was there before the policies: what is not allowed is a condition of its record, and nothing of it is there.
async fn reconciler(world: &World, wrong: &mut Vec<String>) -> Result<()> {
    let said = world.admin.run(&["reconcile"]).await?;
    let get = ["get", "addoninstallations", "-A", "-o", "json"];
    let records: Value = serde_json::from_str(&world.admin.kubectl(&get).await?.done()?.stdout)?;
    let records = records["items"].as_array().context("no records")?;
    for row in world.rows.iter().filter(|row| row.is_tried(Layer::Loop)) {
        let mut all = records.iter();
        let record = all.find(|one| one["metadata"]["namespace"] == row.name.as_str());
        let status = &record.context("no record")?["status"];
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut stalled =
            conditions.filter(|one| one["type"] == "Stalled" && one["status"] == "True");
        let words = format!("AddonPolicy {} ", row.name);
        let found = match stalled.next() {
            Some(stalled) if stalled["reason"] == "Denied" => {
                ensure!(status["inventory"].is_null(), "{status}");
                Said::Denied(stalled["message"].to_string())
            }
            _ if status["installed"].is_null() => Said::Denied(status.to_string()),
            _ if said.stderr.contains(&words) => Said::Warned(said.stderr.clone()),
            _ => Said::Nothing,
        };
        compare(row, Layer::Loop, &found, &status.to_string(), wrong);
    }
    Ok(())
}

/// Raw requests, which the webhook judges, or without it the API server itself.
async fn raw(world: &World, layer: Layer, wrong: &mut Vec<String>) -> Result<()> {
    for row in world.rows.iter().filter(|row| row.is_tried(layer)) {
        let answer = world.attempt(row).await?;
        compare(row, layer, &heard(&answer), &format!("{answer:?}"), wrong);
    }
    Ok(())
}

fn heard(answer: &Answer) -> Said {
    let warnings = answer.warnings.join("\n");
    match &answer.refusal {
        Some((_, message)) => Said::Denied(message.clone()),
        None if warnings.contains("AddonPolicy") => Said::Warned(warnings),
        None => Said::Nothing,
    }
}

/// The audit log and the metrics name policy and rule.
async fn recorded(world: &World, webhook: &Webhook) -> Result<()> {
    let first = |action: &str, is_wanted: fn(&Said) -> bool| {
        let mut rows = world.rows.iter();
        let of_catalogues = |row: &&Row| {
            let said = row.expected(Layer::Webhook);
            is_wanted(&said) && format!("{said:?}").contains("(spec.allowed.catalogues)")
        };
        let row = rows.find(of_catalogues).context("no such row")?;
        Ok::<_, anyhow::Error>(format!("\"{} policy-catalogue {action}\"", row.name))
    };
    let denied = first("Enforce", |said| matches!(said, Said::Denied(_)))?;
    let warned = first("Warn", |said| matches!(said, Said::Warned(_)))?;
    for line in [denied, warned] {
        let wanted = format!("\"validate.kubectl-addons.dev/policies\":{line}");
        until("the audit log names the policy", async || {
            let log = std::fs::read_to_string(world.cluster.folder().join("audit.log"))?;
            let is_there = log.contains(&wanted);
            Ok(is_there.then_some(()).ok_or_else(|| wanted.clone()))
        })
        .await?;
    }
    let metrics = reqwest::get(format!("{}/metrics", webhook.health_url())).await?;
    let metrics = metrics.text().await?;
    for name in ["denials", "policy_warnings"] {
        let line = format!("addons_webhook_{name}_total{{rule=\"policy-catalogue\"}}");
        ensure!(metrics.contains(&line), "{metrics}");
    }
    Ok(())
}

/// A policy that is changed is in force as it is now, without a restart.
async fn changed(world: &World, layer: Layer) -> Result<()> {
    let is_denied = |row: &&Row| {
        matches!(row.expected(layer), Said::Denied(_))
            && row.is_tried(layer)
            && row.change.is_none()
    };
    let row = world.rows.iter().find(is_denied).context("no such row")?;
    for (action, is_denied) in [("Warn", false), ("Enforce", true)] {
        let patch = json!({"spec": {"action": action}}).to_string();
        let args = [
            "patch",
            "addonpolicy",
            &row.name,
            "--type=merge",
            "-p",
            &patch,
        ];
        world.admin.kubectl(&args).await?.done()?;
        until("the policy acts as it says", async || {
            let answer = world.attempt(row).await?;
            let is_right = match heard(&answer) {
                Said::Denied(_) => is_denied,
                Said::Warned(_) => !is_denied,
                Said::Nothing => false,
            };
            Ok(is_right
                .then_some(())
                .ok_or(format!("{action}: {answer:?}")))
        })
        .await?;
    }
    Ok(())
}

/// The policies of deploy/policies are in force, and their types are right.
async fn statically(world: &World) -> Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/policies");
    let said = world
        .admin
        .kubectl(&["apply", "-k", folder])
        .await?
        .done()?;
    ensure!(!said.stderr.contains("Warning"), "{}", said.stderr);
    for policy in ["kubectl-addons-enforce", "kubectl-addons-warn"] {
        let args = ["get", "validatingadmissionpolicy", policy, "-o", "json"];
        let checked = until("the types are checked", async || {
            let text = world.admin.kubectl(&args).await?.done()?.stdout;
            let status = serde_json::from_str::<Value>(&text)?["status"].clone();
            Ok(status
                .get("typeChecking")
                .cloned()
                .ok_or_else(|| status.to_string()))
        })
        .await?;
        ensure!(
            checked.get("expressionWarnings").is_none(),
            "{policy}: {checked}"
        );
    }
    world.in_force().await?;
    // The other one is a policy of its own, whose parameters come by another watch.
    let is_warned = |row: &&Row| {
        matches!(row.expected(Layer::Static), Said::Warned(_)) && row.is_tried(Layer::Static)
    };
    let row = world.rows.iter().find(is_warned).context("no such row")?;
    until("the policy that warns is in force", async || {
        let answer = world.attempt(row).await?;
        let is_warned = matches!(heard(&answer), Said::Warned(_));
        Ok(is_warned.then_some(()).ok_or(format!("{answer:?}")))
    })
    .await
}
