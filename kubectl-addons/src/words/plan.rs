//! Describes an operation: what will happen before it, and what happened after it, with the same words and counts.

mod adopted;
mod again;
pub mod atomic;
pub mod brief;
pub mod record;

use std::fmt::Write as _;

use addons_engine::Report;
use addons_plan::crd_safety::Breakage;
use addons_plan::graph::{Graph, Reason};
use addons_plan::prune::KeptKind;
use addons_plan::{InstallationPlan, Verb, summary};
use common::api::installation::Installed;
use common::foreign::Foreign;
use common::manifest::key::ObjectKey;

use jiff::Timestamp;

use super::dry_run::verdicts;
use super::settled;
use addons_operation::text::seconds;

use addons_operation::{Choices, Plan, Planned};

pub use adopted::is_lost;
pub use again::again;

/// How many objects are listed one by one. More are counted by kind.
pub const LISTED: usize = 10;

/// Describes what a plan will do, for the confirmation.
fn plan(item: &Planned, graph: &Graph, part: usize) -> String {
    let plan = &item.plan;
    let mut text = headline(item);
    text.push('\n');
    if let Some(namespace) = &plan.create_namespace {
        line(&mut text, "create", &format!("Namespace {namespace}"));
    }
    if let Some(release) = &plan.helm_release {
        let what = match plan.verb {
            Verb::Uninstall | Verb::Release => "helm uninstalls it",
            Verb::Install | Verb::Upgrade | Verb::Rollback | Verb::Adopt => {
                "helm installs it, waits for it and prunes it"
            }
        };
        let named = format!("Release {}/{}: {what}", release.namespace, release.name);
        line(&mut text, "helm", &named);
    }
    for part in summary::lines(plan) {
        if !matches!(
            part.word,
            "adopt" | "recreate" | "prune" | "release" | "retain"
        ) {
            line(
                &mut text,
                part.word,
                &format!("{:<11} {}", objects(part.objects), part.kinds),
            );
        }
    }
    adopted::lines(&mut text, item);
    adopted::given_back(&mut text, plan);
    adopted::records(&mut text, plan);
    adopted::rebuilt(&mut text, plan);
    deletions(&mut text, plan);
    if let Some(namespace) = &plan.delete_namespace {
        let why = "created by this installation, if nothing else is in it";
        line(
            &mut text,
            "delete",
            &format!("Namespace {namespace} ({why})"),
        );
    }
    acceptable(&mut text, plan);
    let released = plan.release.iter().map(|target| &target.key).collect();
    each(&mut text, "release", released, |key| {
        format!("{key} (it existed before; it stays)")
    });
    each(
        &mut text,
        "keep",
        plan.retained.iter().collect(),
        |key| match KeptKind::of(key) {
            Some(_) => format!("{key} (not deleted, because it may hold data)"),
            None => format!("{key} (it stays as it is)"),
        },
    );
    for nodes in plan.kops.iter().map(|kops| &kops.nodes) {
        if !nodes.is_empty() {
            let what = format!(
                "{} as needing an update (kops replaces them)",
                nodes.join(", ")
            );
            line(&mut text, "mark", &format!("nodes {what}"));
        }
    }
    for one in &plan.moving {
        line(
            &mut text,
            "move",
            &format!("{} to {}", one.key, one.to.name),
        );
    }
    if let Some(order) = summary::order(plan, graph, part) {
        line(&mut text, "order", &order);
    }
    record::lines(&mut text, item);
    warnings(&mut text, plan);
    atomic::lines(&mut text, item);
    text
}

/// Lists the objects that will be deleted.
fn deletions(text: &mut String, plan: &InstallationPlan) {
    let deletions = plan.prune.iter().flatten();
    let keys = deletions.map(|deletion| &deletion.target.key).collect();
    let word = match plan.verb {
        Verb::Uninstall => "delete",
        _ => "prune",
    };
    each(text, word, keys, ToString::to_string);
}

/// Lists what the user has to accept (dropped stored versions, objects that cannot be changed in place), and what is refused.
fn acceptable(text: &mut String, plan: &InstallationPlan) {
    for migration in &plan.migrations {
        let flag = if migration.is_accepted {
            ""
        } else {
            " (to accept: --migrate-stored-versions)"
        };
        line(text, "migrate", &format!("{migration}{flag}"));
    }
    for (word, rest) in verdicts(plan) {
        line(text, word, &rest);
    }
}

fn warnings(text: &mut String, plan: &InstallationPlan) {
    for breakage in plan.breakages.iter().flat_map(Breakage::lines) {
        line(text, "warning", &breakage);
    }
    for warning in &plan.warnings {
        line(text, "warning", warning);
    }
}

/// Describes what is written before any installation: CRDs, and the namespaces of first records. Often empty.
pub fn first(plan: &Plan) -> String {
    let mut text = String::new();
    if plan.defines {
        text.push_str("first use in this cluster\n");
        line(&mut text, "create", "its CustomResourceDefinitions");
    }
    for namespace in &plan.namespaces {
        if plan.defines && namespace.create {
            line(
                &mut text,
                "create",
                &format!("Namespace {}", namespace.name),
            );
        }
        if namespace.holds_core {
            let what = "its deletion is denied while it holds core add-ons";
            line(
                &mut text,
                "protect",
                &format!("Namespace {}: {what}", namespace.name),
            );
        }
    }
    text
}

/// Describes the plans of a command one by one, with the installations that come before each.
pub fn plans(all: &Plan) -> impl Iterator<Item = String> + '_ {
    let prepared = &all.installations;
    prepared.iter().enumerate().map(|(part, item)| {
        let mut text = plan(item, &all.graph, part);
        for (other, reasons) in all.graph.parts_before(part) {
            let name = prepared
                .get(other)
                .map(|other| &other.plan.installation.name);
            let reasons: Vec<&str> = reasons.into_iter().map(Reason::word).collect();
            let after = format!(
                "{} ({})",
                name.map_or("", String::as_str),
                reasons.join(", ")
            );
            line(&mut text, "after", &after);
        }
        text
    })
}

/// Describes what happened. `choices` are those that the plan was made with.
pub fn report(item: &Planned, choices: &Choices, report: &Report, waited: bool) -> String {
    let plan = &item.plan;
    let mut text = outcome(plan, report, waited);
    objects_of(&mut text, report);
    if let Some(back) = &report.back {
        text.push_str(&atomic::back(item, choices, back, waited));
    } else if report.spec_restored {
        let former = "nothing was applied; the installation keeps its former version and values";
        line(&mut text, "restored", former);
    } else if !report.is_done() {
        let command = again(plan, choices);
        line(
            &mut text,
            "again",
            &format!("{command} continues where this ended"),
        );
        if let Some(back) = again::back(item, choices) {
            line(&mut text, "go back", &back);
        }
    }
    text
}

/// Lists the objects whose result the user should know.
fn objects_of(text: &mut String, report: &Report) {
    let settled = report
        .settled
        .iter()
        .map(|settled| settled::line(settled, Timestamp::now()));
    some(text, settled);
    some(
        text,
        report
            .recreated
            .iter()
            .map(|key| ("recreated", key.to_string())),
    );
    let failed = report.failed.iter();
    some(
        text,
        failed.map(|failure| ("failed", format!("{}: {}", failure.key, failure.message))),
    );
    let skipped = report.skipped.iter();
    some(
        text,
        skipped.map(|(key, why)| ("skipped", format!("{key}: {why}"))),
    );
    let not_ready = report.not_ready.iter();
    some(
        text,
        not_ready.map(|(key, readiness)| ("not ready", format!("{key}: {}", readiness.message))),
    );
}

/// The first line of a report: `web 1.0.0 installed: 9 created, ready in 5.2s`.
fn outcome(plan: &InstallationPlan, report: &Report, waited: bool) -> String {
    let name = title(plan);
    let counts = counts(report, deleted(plan));
    let elapsed = seconds(report.elapsed);
    if !report.is_done() {
        return format!("{name} is not done after {elapsed}: {counts}\n");
    }
    let done = match plan.verb {
        Verb::Install => "installed",
        Verb::Upgrade => "upgraded",
        Verb::Rollback => "rolled back",
        Verb::Adopt if plan.rebuilt.is_some() => "recorded",
        Verb::Adopt => "taken over",
        Verb::Uninstall => "uninstalled",
        Verb::Release => "released",
    };
    let after = match plan.verb {
        Verb::Uninstall | Verb::Release => format!(" in {elapsed}"),
        _ if waited => format!(", ready in {elapsed}"),
        _ => String::new(),
    };
    format!("{name} {done}: {counts}{after}\n")
}

/// Formats the counts of a report: `1 created, 2 updated`. `deleted` is the word for deletions.
fn counts(report: &Report, deleted: &str) -> String {
    let counts: Vec<String> = [
        (report.created.len(), "created"),
        (report.adopted.len(), "adopted"),
        (report.changed.len(), "changed"),
        (report.recreated.len(), "recreated"),
        (report.migrated, "migrated"),
        (report.pruned.len(), deleted),
        (report.retained.len(), "kept"),
        (report.unchanged, "unchanged"),
        (report.failed.len(), "failed"),
        (report.skipped.len(), "skipped"),
        (report.not_ready.len(), "not ready"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .collect();
    match counts.as_slice() {
        [] => "nothing to change".to_owned(),
        counts => counts.join(", "),
    }
}

/// The word for objects that a plan deletes.
pub fn deleted(plan: &InstallationPlan) -> &'static str {
    match plan.verb {
        Verb::Uninstall => "deleted",
        _ => "pruned",
    }
}

/// Formats a version: `1.2.0`, `1.2.0 (id k8s-1.30)`, or the id or the first 8 characters of the hash if there is no version.
pub fn label(installed: &Installed) -> String {
    let label = match (installed.version.as_str(), installed.id.as_str()) {
        ("", "") => installed.manifest_hash.chars().take(8).collect(),
        ("", id) => format!("id {id}"),
        (version, "") => version.to_owned(),
        (version, id) => format!("{version} (id {id})"),
    };
    Foreign::new(&label).into()
}

fn headline(item: &Planned) -> String {
    let plan = &item.plan;
    let name = title(plan);
    match (plan.verb, &plan.from, &plan.to) {
        (Verb::Uninstall, ..) => format!("uninstalling {name}"),
        (Verb::Release, ..) => format!("releasing {name}: the objects stay"),
        (Verb::Adopt, ..) if plan.rebuilt.is_some() => adopted::recording(plan),
        (Verb::Adopt, ..) => format!("adopting {name}: only owners change"),
        (_, Some(from), Some(to)) if label(from) != label(to) => {
            format!(
                "{}  {} → {}",
                plan.installation.name,
                label(from),
                label(to)
            )
        }
        _ => format!(
            "{name} into {}",
            plan.wanted
                .spec
                .target_namespace
                .as_deref()
                .unwrap_or_default()
        ),
    }
}

fn title(plan: &InstallationPlan) -> String {
    let installed = plan.to.as_ref().or(plan.from.as_ref());
    let label = installed.map(label).unwrap_or_default();
    if label.is_empty() {
        plan.installation.name.clone()
    } else {
        format!("{} {label}", plan.installation.name)
    }
}

pub(super) fn objects(count: usize) -> String {
    if count == 1 {
        "1 object".to_owned()
    } else {
        format!("{count} objects")
    }
}

/// Adds a line for each object, or one with counts if there are more than [`LISTED`].
fn each(
    text: &mut String,
    word: &str,
    keys: Vec<&ObjectKey>,
    words: impl Fn(&ObjectKey) -> String,
) {
    if keys.len() > LISTED {
        let counted = format!("{:<11} {}", objects(keys.len()), summary::kinds(keys));
        return line(text, word, &counted);
    }
    for key in keys {
        line(text, word, &words(key));
    }
}

/// Adds the first lines and the number of the others: failures were already shown when they happened.
fn some(text: &mut String, lines: impl ExactSizeIterator<Item = (&'static str, String)>) {
    let more = lines.len().saturating_sub(LISTED);
    let mut last = "";
    for (word, rest) in lines.take(LISTED) {
        line(text, word, &rest);
        last = word;
    }
    if more > 0 {
        line(text, last, &format!("and {more} more"));
    }
}

fn line(text: &mut String, word: &str, rest: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {word:<9} {}", Foreign::new(rest));
}
