//! Lists what is due in a directory, for programs: `sync -o json`.

use std::collections::BTreeMap;

use addons_operation::Plan;
use addons_plan::Verb;
use addons_plan::summary;
use anyhow::Result;
use serde::Serialize;

use crate::cli::Format;
use crate::output::{self, Items};

/// An installation that is due.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
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
pub(super) fn show(plans: [Option<&Plan>; 2], format: Format) -> Result<()> {
    let planned = plans.into_iter().flatten();
    let planned = planned.flat_map(|plan| &plan.installations);
    let rows: Vec<Row<'_>> = planned
        .map(|planned| {
            let plan = &planned.plan;
            let lines = summary::lines(plan).into_iter();
            Row {
                namespace: &plan.installation.namespace,
                name: &plan.installation.name,
                verb: plan.verb,
                objects: lines.map(|line| (line.word, line.objects)).collect(),
            }
        })
        .collect();
    match format {
        Format::Json | Format::Yaml | Format::Template(_) => {
            output::value(&Items { items: &rows }, format)?
        }
        Format::Name => output::names(
            "addoninstallation.kubectl-addons.dev",
            rows.iter().map(|row| row.name),
        ),
        Format::Table | Format::Wide => {}
    }
    Ok(())
}
