//! What became of installations that were reconciled.

use addons_loops::Outcome;
use addons_operation::OperationError;
use common::api::names::InstallationName;

use super::{hint, plan};
use crate::output;

/// An error and the way out, as one line for a condition: its readers have no terminal that shows the lines below it.
pub fn condition(error: &OperationError) -> String {
    let ways = hint::lines(error);
    let ways = ways.iter().map(|line| format!("; {line}"));
    let text = format!("{}{}", output::chain(error), ways.collect::<String>());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line for each outcome but an error.
pub fn outcome(name: &InstallationName, outcome: &Outcome) -> String {
    match outcome {
        Outcome::UpToDate => format!("{name}  up to date"),
        Outcome::Suspended => format!("{name}  suspended"),
        Outcome::Elsewhere => format!("{name}  comes from a directory, and is left alone"),
        Outcome::Terminating => format!("{name}  is being deleted by another client"),
        Outcome::Executed(executed, report) => {
            let reports = executed.installations.iter();
            reports.map(|one| plan::report(one, report, true)).collect()
        }
        Outcome::Failed(error) => format!("{name}  {error}"),
    }
}
