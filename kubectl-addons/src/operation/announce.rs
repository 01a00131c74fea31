//! The words of an operation: what will happen before, what happened after, with the same counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use common::api::installation::Installed;
use common::engine::Report;
use common::manifest::key::ObjectKey;
use common::plan::{Action, Plan, Verb};

use crate::progress::seconds;

/// What a plan will do, as the confirmation shows it.
pub fn plan(plan: &Plan) -> String {
    let mut text = headline(plan);
    if plan.is_empty() {
        text.push_str("   nothing to do in the cluster\n");
    } else {
        text.push('\n');
    }
    if let Some(namespace) = &plan.create_namespace {
        line(&mut text, "create", &format!("Namespace {namespace}"));
    }
    for (word, actions) in [
        ("create", &[Action::Create] as &[_]),
        ("change", &[Action::Update, Action::Refresh]),
        ("restore", &[Action::Restore]),
    ] {
        let keys: Vec<_> = plan.steps().filter(|step| actions.contains(&step.action)).map(|step| &step.target.key).collect();
        if !keys.is_empty() {
            line(&mut text, word, &format!("{:<11} {}", objects(keys.len()), kinds(keys.iter().copied())));
        }
    }
    let pruned: Vec<_> = plan.prune.iter().flatten().map(|deletion| &deletion.target.key).collect();
    for key in pruned.iter().take(LISTED) {
        line(&mut text, if plan.verb == Verb::Uninstall { "delete" } else { "prune" }, &key.to_string());
    }
    if pruned.len() > LISTED {
        line(&mut text, "", &format!("and {} more: {}", pruned.len() - LISTED, kinds(pruned.iter().skip(LISTED).copied())));
    }
    for target in &plan.release {
        line(&mut text, "release", &format!("{} (it was there before, it stays)", target.key));
    }
    for key in &plan.retained {
        line(&mut text, "keep", &format!("{key} (its kind holds data)"));
    }
    if plan.waves.len() > 1 {
        line(&mut text, "order", &order(plan));
    }
    for warning in &plan.warnings {
        line(&mut text, "careful", warning);
    }
    text
}

/// What happened.
pub fn report(plan: &Plan, report: &Report) -> String {
    let mut counts = Vec::new();
    for (count, word) in [
        (report.created.len(), "created"),
        (report.changed.len(), "changed"),
        (report.pruned.len(), if plan.verb == Verb::Uninstall { "deleted" } else { "pruned" }),
        (report.retained.len(), "kept"),
        (report.unchanged, "unchanged"),
        (report.failed.len(), "failed"),
        (report.skipped.len(), "skipped"),
        (report.not_ready.len(), "not ready"),
    ] {
        if count > 0 {
            counts.push(format!("{count} {word}"));
        }
    }
    let name = title(plan);
    let counts = if counts.is_empty() { "nothing to change".to_owned() } else { counts.join(", ") };
    let elapsed = seconds(report.elapsed);
    let mut text = if report.is_done() {
        let done = match plan.verb {
            Verb::Install => "installed",
            Verb::Upgrade => "upgraded",
            Verb::Uninstall => "uninstalled",
        };
        let after = if report.waited { format!(", ready in {elapsed}") } else { String::new() };
        format!("{name} {done}: {counts}{after}\n")
    } else {
        format!("{name} is not done: {counts}, after {elapsed}\n")
    };
    for (key, message) in &report.failed {
        line(&mut text, "failed", &format!("{key}: {message}"));
    }
    for (key, message) in report.skipped.iter().take(LISTED) {
        line(&mut text, "skipped", &format!("{key}: {message}"));
    }
    for (key, readiness) in &report.not_ready {
        line(&mut text, "not ready", &format!("{key}: {}", readiness.message));
    }
    text
}

/// How many objects are listed one by one before they are counted by kind.
const LISTED: usize = 10;

fn headline(plan: &Plan) -> String {
    let name = title(plan);
    match (&plan.verb, &plan.from, &plan.to) {
        (Verb::Uninstall, ..) => format!("uninstall {name}"),
        (_, Some(from), Some(to)) if label(from) != label(to) => {
            format!("{}  {} → {}", plan.installation.name, label(from), label(to))
        }
        _ => format!("{name} into {}", plan.target_namespace),
    }
}

fn title(plan: &Plan) -> String {
    let installed = plan.to.as_ref().or(plan.from.as_ref());
    let label = installed.map(label).unwrap_or_default();
    if label.is_empty() { plan.installation.name.clone() } else { format!("{} {label}", plan.installation.name) }
}

/// `1.2.0`, `1.2.0 (id k8s-1.30)`, or the id or the beginning of the hash where there is no version.
pub fn label(installed: &Installed) -> String {
    match (installed.version.as_str(), installed.id.as_str()) {
        ("", "") => installed.manifest_hash.chars().take(8).collect(),
        ("", id) => format!("id {id}"),
        (version, "") => version.to_owned(),
        (version, id) => format!("{version} (id {id})"),
    }
}

fn order(plan: &Plan) -> String {
    let waves = plan.waves.iter().filter(|wave| !wave.steps.is_empty()).enumerate();
    waves.map(|(i, wave)| format!("{} {}", i + 1, wave.title)).collect::<Vec<_>>().join(" → ")
}

/// `ServiceAccount, ClusterRole ×2`, in the order of first appearance.
pub fn kinds<'a>(keys: impl Iterator<Item = &'a ObjectKey>) -> String {
    let mut order = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for key in keys {
        let count = counts.entry(&key.kind).or_default();
        if *count == 0 {
            order.push(key.kind.as_str());
        }
        *count += 1;
    }
    let words = order.into_iter().map(|kind| match counts.get(kind) {
        Some(1) | None => kind.to_owned(),
        Some(count) => format!("{kind} ×{count}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn objects(count: usize) -> String {
    if count == 1 { "1 object".to_owned() } else { format!("{count} objects") }
}

fn line(text: &mut String, word: &str, rest: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {word:<9}{rest}");
}
