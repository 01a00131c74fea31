//! `core list`: shows the core add-ons of each cluster.

use std::collections::BTreeMap;

use addons_clusters::core_set::{CoreAddon, CoreAddonSource};
use addons_distribution::core_set::ClusterCore;
use addons_distribution::core_set::look::{ClusterLook, CoreSetState};
use addons_operation::Offer;
use addons_plan::standing::StandingState;
use anyhow::Result;
use common::api::installation::AddonInstallation;
use common::api::installation::core_guard::{is_guarded, is_released};
use serde::Serialize;

use crate::cli::OutputFormat;
use crate::cli::core::CoreListArgs;
use crate::commands::core::UnreadCluster;
use crate::exit::Exit;
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use crate::words::core::{self as words, CoreDecision};
use crate::{failure, partial};

/// A core add-on of a cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CoreRow {
    namespace: String,
    name: String,
    /// The installed version, or empty.
    version: String,
    decision: CoreDecision,
    /// The rules and lists that list it.
    listed_by: Vec<String>,
    /// The phase of the record, or empty.
    phase: String,
    /// Whether it has a record.
    #[serde(skip)]
    has_record: bool,
    /// The name of the listed add-on, or empty.
    #[serde(skip)]
    addon: String,
}

/// Lists the core add-ons. The exit code is not 0 if a cluster does not respond, if its core set is unknown, if another installation has
/// the name of a core add-on, or if no catalogue has one.
///
/// # Errors
/// The ConfigMaps or the namespaces cannot be read.
pub async fn run(session: &Session, args: &CoreListArgs) -> Result<Exit> {
    let mut rows = Vec::new();
    let mut worst = Exit::Done;
    let clusters = super::read_clusters(session).await?;
    for (namespace, look) in clusters.looks {
        match look {
            Ok(look) => {
                if let CoreSetState::Found(ClusterCore {
                    set: Err(unknown), ..
                }) = &look.state
                {
                    let error = anyhow::anyhow!("{unknown}").context(namespace.clone());
                    worst = worst.max(failure::report_failure(&error));
                }
                let waits = clusters.waiting.contains(&namespace);
                rows.extend(cluster_rows(&namespace, &look, waits));
            }
            Err(UnreadCluster { error, records }) => {
                worst = worst.max(partial::report_failure(&namespace, error));
                let look = ClusterLook {
                    records,
                    state: CoreSetState::Unused,
                };
                let recorded = cluster_rows(&namespace, &look, false).into_iter();
                rows.extend(recorded.map(|row| CoreRow {
                    decision: CoreDecision::Unknown,
                    phase: StandingState::Unknown.to_string(),
                    ..row
                }));
            }
        }
    }
    mark_not_offered(session, &mut rows).await?;
    let is_stuck =
        |row: &CoreRow| matches!(row.decision, CoreDecision::Taken | CoreDecision::NotOffered);
    if rows.iter().any(is_stuck) {
        worst = worst.max(Exit::Failed);
    }
    match args.output.format {
        OutputFormat::Value(_) => output::print_value(&ItemList { items: &rows }, args.output)?,
        OutputFormat::Name => output::print_names(
            "addoninstallation.kubectl-addons.dev",
            rows.iter().map(|row| row.name.as_str()),
        ),
        OutputFormat::Table | OutputFormat::Wide if rows.is_empty() => {
            if worst == Exit::Done {
                output::note("there are no core add-ons");
            }
        }
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_painted(&table(&rows).render_listing(args.output))
        }
    }
    Ok(worst)
}

/// Marks the listed add-ons without a record that no catalogue has. Catalogues are read only if there are such add-ons.
async fn mark_not_offered(session: &Session, rows: &mut [CoreRow]) -> Result<()> {
    let is_open = |row: &&mut CoreRow| !row.has_record && row.decision == CoreDecision::Listed;
    let mut open = rows.iter_mut().filter(is_open).peekable();
    if open.peek().is_none() {
        return Ok(());
    }
    let catalogue = session.ctx().catalogue(&Offer::Catalogues).await?;
    let names = catalogue.names();
    let is_offered = |row: &CoreRow| {
        let addon = row.addon.as_str();
        names.contains(&addon) || catalogue.find_unread(addon, None).is_some()
    };
    for row in open.filter(|row| !is_offered(row)) {
        row.decision = CoreDecision::NotOffered;
    }
    Ok(())
}

/// The record of a core add-on, and the sources that list it.
type RecordAndSources<'a> = (
    Option<&'a AddonInstallation>,
    Option<&'a (CoreAddon, Vec<CoreAddonSource>)>,
);

/// Returns a row for each add-on that is listed or has a record. `waits` says that changes in this cluster wait for other clusters.
fn cluster_rows(namespace: &str, look: &ClusterLook, waits: bool) -> Vec<CoreRow> {
    let mut all: BTreeMap<&str, RecordAndSources<'_>> = BTreeMap::new();
    for record in look.records.iter().filter(|record| record.spec.core_addon) {
        let name = record.metadata.name.as_deref().unwrap_or_default();
        all.entry(name).or_default().0 = Some(record);
    }
    if let CoreSetState::Found(ClusterCore { set: Ok(set), .. }) = &look.state {
        for (name, listed) in &set.addons {
            let entry = all.entry(name).or_default();
            entry.1 = Some(listed);
        }
    }
    let is_taken = |name: &str| {
        let mut records = look.records.iter();
        records.any(|record| record.metadata.name.as_deref() == Some(name))
    };
    let rows = all.into_iter().map(|(name, (record, listed))| {
        let decision = match (record, listed) {
            (None, Some(_)) if is_taken(name) => CoreDecision::Taken,
            (_, Some(_)) if waits => CoreDecision::Waits,
            (_, Some(_)) => CoreDecision::Listed,
            (Some(record), None) if is_released(record) => CoreDecision::Released,
            (Some(record), None) if !is_guarded(record) => CoreDecision::ByHand,
            _ => match &look.state {
                CoreSetState::Found(ClusterCore { set: Ok(_), .. }) => CoreDecision::Dropped,
                CoreSetState::Deleting { .. } => CoreDecision::ClusterDeleting,
                CoreSetState::Found(_) | CoreSetState::Unused => CoreDecision::Unknown,
            },
        };
        let phase = record.and_then(|record| record.status.as_ref()?.phase);
        let installed = record.and_then(AddonInstallation::installed);
        let sources = listed.map_or(&[][..], |(_, sources)| sources);
        CoreRow {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            version: installed.map(|one| one.version.clone()).unwrap_or_default(),
            decision,
            listed_by: sources.iter().map(CoreAddonSource::to_string).collect(),
            has_record: record.is_some(),
            addon: listed
                .map(|(addon, _)| addon.name.clone())
                .unwrap_or_default(),
            phase: phase.map(|phase| format!("{phase:?}")).unwrap_or_default(),
        }
    });
    rows.collect()
}

fn table(rows: &[CoreRow]) -> Table {
    let mut table = Table::new(&[
        "NAMESPACE",
        "NAME",
        "VERSION",
        "DECISION",
        "LISTED BY",
        "PHASE",
    ]);
    for row in rows {
        table.add_row(vec![
            row.namespace.clone(),
            row.name.clone(),
            row.version.clone(),
            words::describe_decision(row.decision).to_owned(),
            row.listed_by.join(", "),
            row.phase.clone(),
        ]);
    }
    table
}
