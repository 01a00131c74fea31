//! Describes an upgrade that rolls itself back if it fails.

use addons_engine::Back;
use addons_operation::plan::{OnFailure, RollbackPoint};
use addons_operation::text::seconds;
use addons_operation::{Choices, Plan, PlannedInstallation};
use addons_plan::lasting::{LastingEffect, find_lasting_effects};

use super::{add_line, add_object_results, again, describe_plans, format_counts, version_label};
use crate::words::hint::indent_lines;

/// Lists which revision it goes back to, and what that does not undo.
pub(super) fn add_atomic(text: &mut String, item: &PlannedInstallation) {
    let before = match &item.on_failure {
        OnFailure::Stays => return,
        OnFailure::NothingBefore => {
            let nothing =
                "no revision of the installed version is kept: a failed upgrade is not rolled back";
            return add_line(text, "atomic", nothing);
        }
        OnFailure::GoesBack(before) => before,
    };
    add_line(
        text,
        "atomic",
        &format!(
            "if it fails, it goes back to {}",
            version_and_revision(before)
        ),
    );
    for lasting in find_lasting_effects(&item.plan, &before.revision.spec) {
        let what = match lasting {
            LastingEffect::Migrated {
                definition,
                versions,
            } => format!(
                "{definition}: objects stored in {} are stored in another version",
                versions.join(", ")
            ),
            LastingEffect::Recreated(key) => {
                format!("{key} is recreated: its former data is not restored")
            }
            LastingEffect::Job(key) => format!("{key} runs: its effects remain"),
            LastingEffect::Secrets => {
                "values from Secrets are read at the time of the rollback".to_owned()
            }
        };
        add_line(text, "lasting", &what);
    }
}

/// Announces the plan of the rollback.
pub fn announce_going_back(plan: &Plan) -> String {
    let text: String = describe_plans(plan).collect();
    format!("going back:\n{text}")
}

/// Returns the command that rolls back. `None` if the plan has no revision to go back to.
pub fn rollback_command(item: &PlannedInstallation, choices: &Choices) -> Option<String> {
    let OnFailure::GoesBack(before) = &item.on_failure else {
        return None;
    };
    let revision = before.revision.number;
    Some(again::rollback_command(&item.plan, Some(revision), choices))
}

/// Describes the result of the rollback.
pub(super) fn describe_going_back(
    item: &PlannedInstallation,
    choices: &Choices,
    back: &Back,
    waited: bool,
) -> String {
    let OnFailure::GoesBack(before) = &item.on_failure else {
        return String::new();
    };
    let (name, to) = (&item.plan.installation.name, version_and_revision(before));
    let rollback = rollback_command(item, choices).unwrap_or_default();
    match back {
        Back::Executed(report) => {
            let counts = format_counts(report, "pruned");
            let elapsed = seconds(report.elapsed);
            if report.is_done() {
                let ready = match waited {
                    true => format!(", ready in {elapsed}"),
                    false => String::new(),
                };
                return format!("{name} went back to {to}: {counts}{ready}\n");
            }
            let mut text = format!("{name} is not back at {to} after {elapsed}: {counts}\n");
            add_object_results(&mut text, report);
            add_line(
                &mut text,
                "again",
                &format!("{rollback} continues where this ended"),
            );
            text
        }
        Back::Impossible(why) => {
            let fix = indent_lines(&[format!("fix:    {rollback}")]);
            format!("{name} did not go back to {to}: {why}{fix}\n")
        }
    }
}

/// `1.0.0 (revision 3)`.
fn version_and_revision(before: &RollbackPoint) -> String {
    let revision = &before.revision;
    format!(
        "{} (revision {})",
        version_label(&revision.operation.installed),
        revision.number
    )
}
