//! Formats a comparison for people: objects one by one while they fit on a screen, otherwise a line for every decision.

use addons_plan::changes::{ObjectChange, ObjectDiff};
use addons_plan::crd_safety::Breakage;
use addons_plan::migration;
use common::api::installation::HelmRelease;
use common::manifest::key::ObjectKey;
use jiff::Timestamp;

use crate::words::dry_run::describe_unchecked_changes;
use crate::words::hint;
use crate::words::plan::{add_each, add_line};
use crate::words::review::{ListedObject, change_mark, list_decisions, list_objects};

use super::InstallationDiff;

/// The most lines of objects and fields. More are shown as decisions, unless everything is asked for.
const MAX_LINES: usize = 40;

/// How much of a comparison is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffExtent {
    /// What fits on a screen.
    Screen,
    /// Every field in full.
    Full,
}

/// Formats the comparison of one installation. `is_one_of_several` puts its name before the counts.
pub(super) fn render_diff(
    item: &InstallationDiff<'_>,
    is_one_of_several: bool,
    extent: DiffExtent,
    now: Timestamp,
) -> String {
    let changes = item.objects.iter().map(|object| object.diff);
    let listed = list_objects(item.plan, changes, extent == DiffExtent::Full, now);
    let mut text = render_objects(item, &listed);
    let is_short = extent == DiffExtent::Full || text.lines().count() <= MAX_LINES;
    if !is_short {
        text = render_losses(item, &listed);
    }
    if extent == DiffExtent::Screen {
        let decisions = list_decisions(&item.review, item.plan).into_iter();
        // What is listed object by object is not repeated.
        for line in decisions.filter(|line| !is_short || line.word == "marks") {
            add_line(&mut text, line.word, &line.text);
        }
    }
    add_notes(&mut text, item);
    if !is_short {
        let command = hint::command("diff", item.installation);
        add_line(&mut text, "more", &format!("{command} --full"));
    }
    if is_one_of_several {
        text.push_str(&format!("{}: ", item.installation.name));
    }
    text.push_str(&format!("{}\n", item.summary));
    text
}

/// Renders the objects with their fields.
fn render_objects(item: &InstallationDiff<'_>, listed: &[ListedObject<'_>]) -> String {
    let mut text = String::new();
    if let Some(namespace) = item.create_namespace {
        text.push_str(&format!("+ Namespace {namespace}\n"));
    }
    for object in listed {
        add_object(&mut text, object.change, item, &object.lines);
    }
    add_refused_deletions(&mut text, item);
    for key in pruned(item) {
        text.push_str(&format!("- {key}\n"));
    }
    add_deleted_namespace(&mut text, item);
    text
}

/// Renders what is refused, recreated, deleted and created.
fn render_losses(item: &InstallationDiff<'_>, listed: &[ListedObject<'_>]) -> String {
    let mut text = String::new();
    let mut added = Vec::new();
    for ListedObject { change, .. } in listed {
        match change.change() {
            ObjectChange::Refused | ObjectChange::Recreated => {
                add_object(&mut text, change, item, &[]);
            }
            ObjectChange::Added => added.push(&change.key),
            ObjectChange::Changed | ObjectChange::Unchanged => {}
        }
    }
    add_refused_deletions(&mut text, item);
    add_each(
        &mut text,
        "prune",
        pruned(item).collect(),
        ToString::to_string,
    );
    add_deleted_namespace(&mut text, item);
    if let Some(namespace) = item.create_namespace {
        add_line(&mut text, "create", &format!("Namespace {namespace}"));
    }
    add_each(&mut text, "create", added, ToString::to_string);
    text
}

/// Adds an object, and below it why it is recreated or refused, and these lines.
fn add_object(text: &mut String, diff: &ObjectDiff, item: &InstallationDiff<'_>, lines: &[String]) {
    let mark = change_mark(diff.change());
    text.push_str(&format!("{mark} {}\n", diff.key));
    if let Some(why) = &diff.recreated {
        text.push_str(&format!("    recreated: {why}\n"));
    }
    if let Some(error) = &diff.error {
        let way_out = diff.remedy.as_ref().map(|remedy| {
            hint::indent_lines(&hint::object_hints(remedy, &diff.key, item.installation))
        });
        text.push_str(&format!("    {error}{}\n", way_out.unwrap_or_default()));
    }
    for line in lines {
        text.push_str(&format!("    {line}\n"));
    }
}

/// Returns the objects that are deleted.
fn pruned<'a>(item: &'a InstallationDiff<'a>) -> impl Iterator<Item = &'a ObjectKey> {
    let pruned = item.pruned.iter().map(|deletion| &deletion.target.key);
    pruned.filter(|key| item.refused.iter().all(|refusal| refusal.key != **key))
}

fn add_refused_deletions(text: &mut String, item: &InstallationDiff<'_>) {
    for refusal in item.refused {
        let is_deletion = |deletion: &&&addons_plan::Deletion| deletion.target.key == refusal.key;
        if item.pruned.iter().find(is_deletion).is_some() {
            text.push_str(&format!("! {}\n    {}\n", refusal.key, refusal.message));
        }
    }
}

fn add_deleted_namespace(text: &mut String, item: &InstallationDiff<'_>) {
    if let Some(namespace) = item.delete_namespace {
        text.push_str(&format!(
            "- Namespace {namespace} (if nothing else is in it)\n"
        ));
    }
}

/// Adds what is true of the plan beside the changes of its objects.
fn add_notes(text: &mut String, item: &InstallationDiff<'_>) {
    for yielded in item.yielded {
        let fields = yielded.fields.join(", ");
        let what = format!("{}: {fields} (to take back: --conflicts take)", yielded.key);
        add_line(text, "yielded", &what);
    }
    for key in &item.released {
        add_line(
            text,
            "released",
            &format!("{key} (it existed before; it stays)"),
        );
    }
    for key in item.retained {
        add_line(text, "retained", &key.to_string());
    }
    if let Some(HelmRelease { name, namespace }) = item.helm_release {
        let what = format!(
            "Release {namespace}/{name} is not compared; look: kubectl addons render {}",
            item.addon
        );
        add_line(text, "helm", &what);
    }
    if let Some((from, to)) = item.version_change().filter(|_| !item.summary.differs()) {
        add_line(text, "version", &format!("{from} → {to}"));
    }
    for change in &item.record {
        add_line(text, "record", change);
    }
    for line in migration::describe(item.migrations.iter().copied()) {
        add_line(text, "migrate", &line);
    }
    for breakage in item.breakages.iter().flat_map(Breakage::lines) {
        add_line(text, "warning", &breakage);
    }
    for warning in item.warnings {
        add_line(text, "warning", warning);
    }
    let objects = item.objects.iter();
    text.push_str(&describe_unchecked_changes(
        objects.map(|object| object.diff),
    ));
}
