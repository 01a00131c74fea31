//! Lists what is due in a directory, for programs: `sync -o json`.

use std::collections::BTreeMap;

use addons_operation::Plan;
use addons_plan::Verb;
use addons_plan::summary;
use anyhow::Result;
use serde::Serialize;

use crate::cli::OutputFormat;
use crate::output::{self, ItemList};

/// An installation that is due.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DueRow<'a> {
    namespace: &'a str,
    name: &'a str,
    /// `install`, `upgrade` or `uninstall`.
    verb: Verb,
    /// The number of objects for each action of the plan: `create`, `update`, `prune` and others.
    objects: BTreeMap<&'static str, usize>,
}

/// Prints a row for each installation of these plans. Prints nothing as a table, because people see the plans.
///
/// # Errors
/// The output cannot be written.
pub(super) fn print_due(plans: [Option<&Plan>; 2], format: OutputFormat) -> Result<()> {
    let planned = plans.into_iter().flatten();
    let planned = planned.flat_map(|plan| &plan.installations);
    let rows: Vec<DueRow<'_>> = planned
        .map(|planned| {
            let plan = &planned.plan;
            let lines = summary::lines(plan).into_iter();
            DueRow {
                namespace: &plan.installation.namespace,
                name: &plan.installation.name,
                verb: plan.verb,
                objects: lines
                    .map(|line| (line.action.word(), line.objects))
                    .collect(),
            }
        })
        .collect();
    match format {
        OutputFormat::Value(_) => output::print_value(&ItemList { items: &rows }, format)?,
        OutputFormat::Name => output::print_names(
            "addoninstallation.kubectl-addons.dev",
            rows.iter().map(|row| row.name),
        ),
        OutputFormat::Table | OutputFormat::Wide => {}
    }
    Ok(())
}
