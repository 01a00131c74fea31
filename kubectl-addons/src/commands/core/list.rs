//! `core list`: shows the core add-ons of each cluster.

use std::collections::BTreeMap;

use addons_clusters::core_set::change::{is_guarded, is_released};
use addons_clusters::core_set::{CoreAddon, Source};
use addons_operation::core_set::ClusterCore;
use addons_operation::core_set::look::{Look, State};
use anyhow::Result;
use common::api::installation::AddonInstallation;
use serde::Serialize;

use crate::cli::Format;
use crate::cli::core::List;
use crate::exit::Exit;
use crate::output::table::Table;
use crate::output::{self, Items};
use crate::partial;
use crate::session::Session;
use crate::words::core::{self as words, Decided};

/// A core add-on of a cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    namespace: String,
    name: String,
    /// The installed version, or empty.
    version: String,
    decision: Decided,
    /// The rules and lists that list it.
    listed_by: Vec<String>,
    /// The phase of the record, or empty.
    phase: String,
}

/// Lists the core add-ons. The exit code is not 0 if a cluster does not respond, if its core set is unknown, or if another installation has
/// the name of a core add-on.
///
/// # Errors
/// The ConfigMaps or the namespaces cannot be read.
pub async fn run(session: &Session, args: &List) -> Result<Exit> {
    let mut rows = Vec::new();
    let mut worst = Exit::Done;
    let clusters = super::clusters(session).await?;
    for (namespace, look) in clusters.looks {
        match look {
            Ok(look) => {
                if let State::Found(ClusterCore {
                    set: Err(unknown), ..
                }) = &look.state
                {
                    let error = anyhow::anyhow!("{unknown}").context(namespace.clone());
                    worst = worst.max(output::failure(&error));
                }
                let waits = clusters.waiting.contains(&namespace);
                rows.extend(of_cluster(&namespace, &look, waits));
            }
            Err(error) => worst = worst.max(partial::failure(&namespace, error)),
        }
    }
    if rows.iter().any(|row| row.decision == Decided::Taken) {
        worst = worst.max(Exit::Failed);
    }
    match args.output.format {
        Format::Json | Format::Yaml | Format::Template(_) => {
            output::value(&Items { items: &rows }, args.output)?
        }
        Format::Name => output::names(
            "addoninstallation.kubectl-addons.dev",
            rows.iter().map(|row| row.name.as_str()),
        ),
        Format::Table | Format::Wide if rows.is_empty() => {
            output::note("there are no core add-ons")
        }
        Format::Table | Format::Wide => output::data(&table(&rows).listed(args.output)),
    }
    Ok(worst)
}

/// The record of a core add-on, and the sources that list it.
type Known<'a> = (
    Option<&'a AddonInstallation>,
    Option<&'a (CoreAddon, Vec<Source>)>,
);

/// Returns a row for each add-on that is listed or has a record. `waits` says that changes in this cluster wait for other clusters.
fn of_cluster(namespace: &str, look: &Look, waits: bool) -> Vec<Row> {
    let mut all: BTreeMap<&str, Known<'_>> = BTreeMap::new();
    for record in look.records.iter().filter(|record| record.spec.core_addon) {
        let name = record.metadata.name.as_deref().unwrap_or_default();
        all.entry(name).or_default().0 = Some(record);
    }
    if let State::Found(ClusterCore { set: Ok(set), .. }) = &look.state {
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
            (None, Some(_)) if is_taken(name) => Decided::Taken,
            (_, Some(_)) if waits => Decided::Waits,
            (_, Some(_)) => Decided::Listed,
            (Some(record), None) if is_released(record) => Decided::Released,
            (Some(record), None) if !is_guarded(record) => Decided::ByHand,
            _ => match &look.state {
                State::Found(ClusterCore { set: Ok(_), .. }) => Decided::Dropped,
                State::Deleting { .. } => Decided::ClusterDeleting,
                State::Found(_) | State::Unused => Decided::Unknown,
            },
        };
        let phase = record.and_then(|record| record.status.as_ref()?.phase);
        let installed = record.and_then(AddonInstallation::installed);
        let sources = listed.map_or(&[][..], |(_, sources)| sources);
        Row {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            version: installed.map(|one| one.version.clone()).unwrap_or_default(),
            decision,
            listed_by: sources.iter().map(Source::to_string).collect(),
            phase: phase.map(|phase| format!("{phase:?}")).unwrap_or_default(),
        }
    });
    rows.collect()
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "NAMESPACE",
        "NAME",
        "VERSION",
        "DECISION",
        "LISTED BY",
        "PHASE",
    ]);
    for row in rows {
        table.row(vec![
            row.namespace.clone(),
            row.name.clone(),
            row.version.clone(),
            words::decided(row.decision).to_owned(),
            row.listed_by.join(", "),
            row.phase.clone(),
        ]);
    }
    table
}
