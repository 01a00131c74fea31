//! Describes an upgrade that rolls itself back if it fails.

use addons_engine::Back;
use addons_operation::plan::{Before, OnFailure};
use addons_operation::text::seconds;
use addons_operation::{Choices, Plan, Planned};
use addons_plan::lasting::{Lasting, lasting};

use super::{again, counts, label, line, objects_of, plans};
use crate::words::hint;

/// Lists which revision it goes back to, and what that does not undo.
pub(super) fn lines(text: &mut String, item: &Planned) {
    let before = match &item.on_failure {
        OnFailure::Stays => return,
        OnFailure::NothingBefore => {
            let nothing =
                "no revision of the installed version is kept: a failed upgrade is not rolled back";
            return line(text, "atomic", nothing);
        }
        OnFailure::GoesBack(before) => before,
    };
    line(
        text,
        "atomic",
        &format!("if it fails, it goes back to {}", named(before)),
    );
    for lasting in lasting(&item.plan, &before.revision.spec) {
        let what = match lasting {
            Lasting::Migrated {
                definition,
                versions,
            } => format!(
                "{definition}: objects stored in {} are stored in another version",
                versions.join(", ")
            ),
            Lasting::Recreated(key) => {
                format!("{key} is recreated: its former data is not restored")
            }
            Lasting::Job(key) => format!("{key} runs: its effects remain"),
            Lasting::Secrets => {
                "values from Secrets are read at the time of the rollback".to_owned()
            }
        };
        line(text, "lasting", &what);
    }
}

/// Announces the plan of the rollback.
pub fn going_back(plan: &Plan) -> String {
    let text: String = plans(plan).collect();
    format!("going back:\n{text}")
}

/// Returns the command that rolls back. `None` if the plan has no revision to go back to.
pub fn rollback(item: &Planned, choices: &Choices) -> Option<String> {
    let OnFailure::GoesBack(before) = &item.on_failure else {
        return None;
    };
    let revision = before.revision.number;
    Some(again::rollback(&item.plan, Some(revision), choices))
}

/// Describes the result of the rollback.
pub(super) fn back(item: &Planned, choices: &Choices, back: &Back, waited: bool) -> String {
    let OnFailure::GoesBack(before) = &item.on_failure else {
        return String::new();
    };
    let (name, to) = (&item.plan.installation.name, named(before));
    let rollback = rollback(item, choices).unwrap_or_default();
    match back {
        Back::Executed(report) => {
            let counts = counts(report, "pruned");
            let elapsed = seconds(report.elapsed);
            if report.is_done() {
                let ready = match waited {
                    true => format!(", ready in {elapsed}"),
                    false => String::new(),
                };
                return format!("{name} went back to {to}: {counts}{ready}\n");
            }
            let mut text = format!("{name} is not back at {to} after {elapsed}: {counts}\n");
            objects_of(&mut text, report);
            line(
                &mut text,
                "again",
                &format!("{rollback} continues where this ended"),
            );
            text
        }
        Back::Impossible(why) => {
            let fix = hint::below(&[format!("fix:    {rollback}")]);
            format!("{name} did not go back to {to}: {why}{fix}\n")
        }
    }
}

/// `1.0.0 (revision 3)`.
fn named(before: &Before) -> String {
    let revision = &before.revision;
    format!(
        "{} (revision {})",
        label(&revision.operation.installed),
        revision.number
    )
}
