//! Describes an operation: what will happen before it, and what happened after it, with the same words and counts.

mod adopted;
mod again;
pub mod atomic;
pub mod brief;
mod line;
pub mod record;

use addons_engine::{Report, StepEnd};
use addons_plan::closing::ClosingStep;
use addons_plan::crd_safety::Breakage;
use addons_plan::graph::{EdgeReason, Graph};
use addons_plan::prune::KeptKind;
use addons_plan::review::Review;
use addons_plan::summary::PlannedAction;
use addons_plan::{Action, InstallationPlan, Moving, Verb, migration, summary};
use jiff::Timestamp;

use super::conflict;
use super::dry_run::list_verdicts;
use super::review;
use crate::events::ReportCounts;
use addons_operation::text::seconds;
use addons_operation::{Choices, Plan, PlannedInstallation};

pub use adopted::is_deleted_record;
pub use again::continue_command;
pub use line::{MAX_LISTED_OBJECTS, add_each, add_line, count_objects, version_label};

/// Describes what a plan will do, for the confirmation.
fn describe_plan(item: &PlannedInstallation, graph: &Graph, part: usize) -> String {
    let plan = &item.plan;
    let mut text = headline(item);
    text.push('\n');
    let from = plan.wanted.spec.addon_ref.from.as_ref();
    if let Some(from) = from.filter(|_| !plan.verb.ends_installation()) {
        let what = format!("{} ({})", from.location(), from.digest());
        add_line(&mut text, "from", &what);
    }
    if let Some(namespace) = &plan.create_namespace {
        add_line(&mut text, "create", &format!("Namespace {namespace}"));
    }
    if let Some((release, _)) = plan.helm_release() {
        let what = match plan.verb {
            Verb::Uninstall | Verb::Release => "helm uninstalls it",
            Verb::Install | Verb::Upgrade | Verb::Rollback | Verb::Adopt => {
                "helm installs it, waits for it and prunes it"
            }
        };
        let named = format!("Release {}/{}: {what}", release.namespace, release.name);
        add_line(&mut text, "helm", &named);
    }
    for part in summary::lines(plan) {
        if matches!(part.action, PlannedAction::Apply(action) if action != Action::Adopt) {
            let counted = format!("{:<11} {}", count_objects(part.objects), part.kinds);
            add_line(&mut text, part.action.word(), &counted);
        }
    }
    let review = Review::new(plan, &plan.changes());
    for line in review::list_decisions(&review, plan) {
        add_line(&mut text, line.word, &line.text);
    }
    adopted::add_adopted(&mut text, item);
    adopted::add_given_back(&mut text, plan);
    adopted::add_former_records(&mut text, plan);
    adopted::add_rebuilt(&mut text, plan);
    add_deletions(&mut text, plan);
    if let Some(namespace) = &plan.delete_namespace {
        let why = "created by this installation, if nothing else is in it";
        add_line(
            &mut text,
            "delete",
            &format!("Namespace {namespace} ({why})"),
        );
    }
    add_acceptable(&mut text, plan);
    add_each(&mut text, "release", plan.released().collect(), |key| {
        format!("{key} (it existed before; it stays)")
    });
    add_each(
        &mut text,
        "keep",
        plan.retained.iter().collect(),
        |key| match KeptKind::from_key(key) {
            Some(_) => format!("{key} (not deleted, because it may hold data)"),
            None => format!("{key} (it stays as it is)"),
        },
    );
    for nodes in plan.annotation().iter().map(|record| &record.nodes) {
        if !nodes.is_empty() {
            let what = format!(
                "{} as needing an update (kops replaces them)",
                nodes.join(", ")
            );
            add_line(&mut text, "mark", &format!("nodes {what}"));
        }
    }
    for step in &plan.closing {
        if let ClosingStep::HandOver(Moving { key, to }) = step {
            add_line(&mut text, "move", &format!("{key} to {}", to.name));
        }
    }
    if let Some(order) = summary::order(plan, graph, part) {
        add_line(&mut text, "order", &order);
    }
    record::add_record_changes(&mut text, item);
    add_warnings(&mut text, plan);
    atomic::add_atomic(&mut text, item);
    text
}

/// Lists the objects that will be deleted.
fn add_deletions(text: &mut String, plan: &InstallationPlan) {
    let deletions = plan.deletions();
    let keys = deletions.map(|deletion| &deletion.target.key).collect();
    let word = match plan.verb {
        Verb::Uninstall => "delete",
        _ => "prune",
    };
    add_each(text, word, keys, ToString::to_string);
}

/// Lists what the user has to accept (dropped stored versions, objects that cannot be changed in place), and what is refused.
fn add_acceptable(text: &mut String, plan: &InstallationPlan) {
    for (is_accepted, flag) in [
        (false, " (to accept: --migrate-stored-versions)"),
        (true, ""),
    ] {
        let migrations = plan.migrations();
        let migrations = migrations.filter(|migration| migration.is_accepted == is_accepted);
        for line in migration::describe(migrations) {
            add_line(text, "migrate", &format!("{line}{flag}"));
        }
    }
    for (word, rest) in list_verdicts(plan) {
        add_line(text, word, &rest);
    }
}

fn add_warnings(text: &mut String, plan: &InstallationPlan) {
    for breakage in plan.breakages.iter().flat_map(Breakage::lines) {
        add_line(text, "warning", &breakage);
    }
    for warning in &plan.warnings {
        add_line(text, "warning", warning);
    }
}

/// Describes what is written before any installation: CRDs, and the namespaces of first records. Often empty.
pub fn describe_preparation(plan: &Plan) -> String {
    let mut text = String::new();
    if plan.defines {
        text.push_str("first use in this cluster\n");
        add_line(&mut text, "create", "its CustomResourceDefinitions");
    }
    for namespace in &plan.namespaces {
        if plan.defines && namespace.create {
            add_line(
                &mut text,
                "create",
                &format!("Namespace {}", namespace.name),
            );
        }
        if namespace.holds_core {
            let what = "its deletion is denied while it holds core add-ons";
            add_line(
                &mut text,
                "protect",
                &format!("Namespace {}: {what}", namespace.name),
            );
        }
    }
    text
}

/// Describes the plans of a command one by one, with the installations that come before each.
pub fn describe_plans(all: &Plan) -> impl Iterator<Item = String> + '_ {
    let prepared = &all.installations;
    prepared.iter().enumerate().map(|(part, item)| {
        let mut text = describe_plan(item, &all.graph, part);
        for (other, reasons) in all.graph.parts_before(part) {
            let name = prepared
                .get(other)
                .map(|other| &other.plan.installation.name);
            let reasons: Vec<&str> = reasons.into_iter().map(EdgeReason::word).collect();
            let after = format!(
                "{} ({})",
                name.map_or("", String::as_str),
                reasons.join(", ")
            );
            add_line(&mut text, "after", &after);
        }
        text
    })
}

/// Describes what happened. `choices` are those that the plan was made with.
pub fn describe_report(
    item: &PlannedInstallation,
    choices: &Choices,
    report: &Report,
    waited: bool,
) -> String {
    let plan = &item.plan;
    let mut text = describe_outcome(plan, report, waited);
    add_object_results(&mut text, report);
    if let Some(back) = &report.back {
        text.push_str(&atomic::describe_going_back(item, choices, back, waited));
    } else if report.spec_restored {
        let former = "nothing was applied; the installation keeps its former version and values";
        add_line(&mut text, "restored", former);
    } else if !report.is_done() {
        let command = continue_command(plan, choices);
        add_line(
            &mut text,
            "again",
            &format!("{command} continues where this ended"),
        );
        if let Some(back) = again::go_back_command(item, choices) {
            add_line(&mut text, "go back", &back);
        }
    }
    text
}

/// Lists the objects whose result the user should know.
fn add_object_results(text: &mut String, report: &Report) {
    let settled = report
        .settled
        .iter()
        .map(|settled| conflict::describe_settled(settled, Timestamp::now()));
    add_first_of(text, settled);
    add_first_of(
        text,
        report
            .objects(|end| matches!(end, StepEnd::Recreated))
            .map(|key| ("recreated", key.to_string())),
    );
    let failed = report.failed();
    add_first_of(
        text,
        failed.map(|failure| ("failed", format!("{}: {}", failure.key, failure.message))),
    );
    let skipped = report.skipped();
    add_first_of(
        text,
        skipped.map(|(key, why)| ("skipped", format!("{key}: {why}"))),
    );
    let not_ready = report.not_ready();
    add_first_of(
        text,
        not_ready.map(|(key, readiness)| ("not ready", format!("{key}: {}", readiness.message))),
    );
}

/// The first line of a report: `web 1.0.0 installed: 9 created, ready in 5.2s`.
fn describe_outcome(plan: &InstallationPlan, report: &Report, waited: bool) -> String {
    let name = title(plan);
    let counts = format_counts(report, deleted_word(plan));
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
fn format_counts(report: &Report, deleted: &str) -> String {
    let done = ReportCounts::new(report);
    let counts: Vec<String> = [
        (done.created, "created"),
        (done.adopted, "adopted"),
        (done.changed, "changed"),
        (done.recreated, "recreated"),
        (done.migrated, "migrated"),
        (done.pruned, deleted),
        (done.retained, "kept"),
        (done.unchanged, "unchanged"),
        (done.failed, "failed"),
        (done.skipped, "skipped"),
        (done.not_ready, "not ready"),
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
pub fn deleted_word(plan: &InstallationPlan) -> &'static str {
    match plan.verb {
        Verb::Uninstall => "deleted",
        _ => "pruned",
    }
}

/// The first line of a plan: `web  1.0.0 → 1.1.0`.
pub fn headline(item: &PlannedInstallation) -> String {
    let plan = &item.plan;
    let name = title(plan);
    match (plan.verb, &plan.from, &plan.to) {
        (Verb::Uninstall, ..) => format!("uninstalling {name}"),
        (Verb::Release, ..) => format!("releasing {name}: the objects stay"),
        (Verb::Adopt, ..) if plan.rebuilt.is_some() => adopted::recording_headline(plan),
        (Verb::Adopt, ..) => format!("adopting {name}: only owners change"),
        (_, Some(from), Some(to)) if version_label(from) != version_label(to) => {
            format!(
                "{}  {} → {}",
                plan.installation.name,
                version_label(from),
                version_label(to)
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
    let label = installed.map(version_label).unwrap_or_default();
    if label.is_empty() {
        plan.installation.name.clone()
    } else {
        format!("{} {label}", plan.installation.name)
    }
}

/// Adds the first lines and the number of the others: failures were already shown when they happened.
fn add_first_of(text: &mut String, mut lines: impl Iterator<Item = (&'static str, String)>) {
    let mut last = "";
    for (word, rest) in lines.by_ref().take(MAX_LISTED_OBJECTS) {
        add_line(text, word, &rest);
        last = word;
    }
    let more = lines.count();
    if more > 0 {
        add_line(text, last, &format!("and {more} more"));
    }
}
