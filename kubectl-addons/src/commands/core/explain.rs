//! `core explain NAME`: shows each decision about an add-on, and the rule that made it.

use addons_distribution::core_set::ClusterCore;
use addons_distribution::core_set::look::CoreSetState;
use anyhow::Result;
use serde::Serialize;

use crate::cli::OutputFormat;
use crate::cli::core::CoreExplainArgs;
use crate::exit::{Exit, UsageError};
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use crate::words::core as words;
use crate::{failure, partial};

/// What a rule or the list decides about the add-on in one cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DecisionRow {
    namespace: String,
    listed_by: String,
    version: String,
    /// The condition. Empty for the list.
    when: String,
    /// Whether the condition holds. Absent if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<bool>,
    /// Why it is unknown whether the condition holds, or empty.
    problem: String,
}

/// Shows the decisions. The exit code is not 0 if a cluster does not respond or its core set is unknown.
///
/// # Errors
/// Neither a rule nor the list names the add-on, or the ConfigMaps or the namespaces cannot be read.
pub async fn run(session: &Session, args: &CoreExplainArgs) -> Result<Exit> {
    let mut rows = Vec::new();
    let mut worst = Exit::Done;
    for (namespace, look) in super::read_clusters(session).await?.looks {
        let core = match look.map(|look| look.state) {
            Ok(CoreSetState::Found(core)) => core,
            Ok(CoreSetState::Unused | CoreSetState::Deleting { .. }) => continue,
            Err(error) => {
                worst = worst.max(partial::report_failure(&namespace, error.error));
                continue;
            }
        };
        if let ClusterCore {
            set: Err(unknown), ..
        } = &core
        {
            let error = anyhow::anyhow!("{unknown}").context(namespace.clone());
            worst = worst.max(failure::report_failure(&error));
        }
        let decisions = core.decisions.into_iter();
        let about = decisions.filter(|decision| decision.addon.name == args.name);
        rows.extend(about.map(|decision| {
            DecisionRow {
                namespace: namespace.clone(),
                listed_by: decision.source.to_string(),
                version: decision.addon.version.unwrap_or_default(),
                when: decision.when.unwrap_or_default(),
                holds: decision.holds.as_ref().ok().copied(),
                problem: decision
                    .holds
                    .err()
                    .map(|error| error.to_string())
                    .unwrap_or_default(),
            }
        }));
    }
    if rows.is_empty() && worst == Exit::Done {
        let text = format!("no rule and no list of core add-ons names {}", args.name);
        return Err(UsageError(text).into());
    }
    match args.output.format {
        OutputFormat::Value(_) => output::print_value(&ItemList { items: &rows }, args.output)?,
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Name => {
            output::print_painted(&table(&rows).render_listing(args.output))
        }
    }
    Ok(worst)
}

fn table(rows: &[DecisionRow]) -> Table {
    let mut table = Table::new(&["NAMESPACE", "LISTED BY", "VERSION", "WHEN", "ANSWER"]);
    for row in rows {
        table.add_row(vec![
            row.namespace.clone(),
            row.listed_by.clone(),
            row.version.clone(),
            row.when.clone(),
            words::describe_condition(row.holds, &row.problem),
        ]);
    }
    table
}
