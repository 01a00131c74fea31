//! What became of installations that were reconciled.

use addons_engine::Report;
use addons_loops::Outcome;
use addons_loops::installation::Words;
use addons_operation::{OperationError, Plan, name_of};
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;

use super::{hint, plan};
use crate::output;

/// For conditions and Events.
pub const WORDS: Words = Words {
    error: condition,
    elsewhere,
    report: event,
};

/// An error and the way out, as one line for a condition: its readers have no terminal that shows the lines below it.
fn condition(error: &OperationError) -> String {
    let ways = hint::lines(error);
    let ways = ways.iter().map(|line| format!("; {line}"));
    let text = format!("{}{}", output::chain(error), ways.collect::<String>());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why an index cannot be read here, and the command of those who can read it.
fn elsewhere(record: &AddonInstallation, error: &OperationError) -> String {
    let text = output::chain(error);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let upgrade = hint::command("upgrade", &name_of(record));
    let index = record.spec.addon_ref.index.as_deref().unwrap_or_default();
    let index = hint::word(index);
    format!("{text}; fix: {upgrade} --channel {index}, where it can be read")
}

/// The first line of a report, as a note of an Event.
fn event(executed: &Plan, report: &Report) -> String {
    let all = executed.installations.iter();
    let text: String = all.map(|one| plan::report(one, report, true)).collect();
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

/// What a loop says of an outcome; nothing where nothing happened.
pub fn news(name: &InstallationName, of: &Outcome) -> Option<String> {
    match of {
        Outcome::Executed(..) => Some(outcome(name, of).trim_end().to_owned()),
        Outcome::Failed(error) => Some(format!("{name}  {}", condition(error))),
        _ => None,
    }
}

/// A line for each outcome but an error.
pub fn outcome(name: &InstallationName, outcome: &Outcome) -> String {
    match outcome {
        Outcome::UpToDate => format!("{name}  up to date"),
        Outcome::Suspended => format!("{name}  suspended"),
        Outcome::OfDirectory => format!("{name}  comes from a directory, and is left alone"),
        Outcome::Elsewhere(message) => format!("{name}  is managed elsewhere: {message}"),
        Outcome::Terminating => format!("{name}  is being deleted by another client"),
        Outcome::Executed(executed, report) => {
            let reports = executed.installations.iter();
            reports.map(|one| plan::report(one, report, true)).collect()
        }
        Outcome::Failed(error) => format!("{name}  {error}"),
    }
}
