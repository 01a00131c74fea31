//! What is due in a directory, for programs: `sync -o json`.

use std::collections::BTreeMap;

use addons_operation::Plan;
use addons_plan::Verb;
use addons_plan::summary;
use anyhow::Result;
use serde::Serialize;

use crate::cli::Format;
use crate::output::{self, Items};

/// One installation that is due.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    namespace: &'a str,
    name: &'a str,
    /// `install`, `upgrade` or `uninstall`.
    verb: Verb,
    /// How many objects: `create`, `update`, `prune` and the other words of a plan.
    objects: BTreeMap<&'static str, usize>,
}

/// Prints a row for each installation of these plans; nothing as a table, for people are shown the plans.
///
/// # Errors
/// Stdout is closed.
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
