//! `history NAME`: lists the revisions of an installation, and what each one changed.

use addons_engine::{EngineError, revisions};
use addons_operation::{Records, name_of};
use addons_plan::history::StoredRevision;
use anyhow::Result;
use common::age::age;
use common::api::installation::{AddonInstallation, HistoryEntry};
use common::api::names::{InstallationName, revision_name};
use common::api::verb::RecordedVerb;
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::OutputFormat;
use crate::cli::history::HistoryArgs;
use crate::commands::list::shorten_status;
use crate::exit::Exit;
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use crate::words;
use crate::words::plan::version_label;

/// A revision, or an operation without a stored revision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RevisionRow {
    /// Absent if it is not possible to roll back to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    by: String,
    verb: RecordedVerb,
    /// The revision that a rollback went back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollback_to: Option<i64>,
    version: String,
    id: String,
    /// `done`, or why the operation failed.
    outcome: String,
    /// The differences from the previous revision.
    changed: Vec<String>,
    #[serde(skip)]
    label: String,
}

/// Lists the revisions of an installation, newest first.
///
/// # Errors
/// The installation does not exist, or the server cannot be reached or refuses the request.
pub async fn run(session: &Session, args: &HistoryArgs) -> Result<Exit> {
    let known = Records::read(session.ctx()).await?;
    let record = known.find(&args.name, session.global().namespace.as_deref())?;
    let kept = match revisions::list(session.ctx().home().await?, record).await {
        Ok(kept) => kept,
        // The history in the record can still be shown.
        Err(error @ EngineError::Forbidden { .. }) => {
            output::warn(&format!("the revisions cannot be read: {error}"));
            Vec::new()
        }
        Err(error) => return Err(error.into()),
    };
    let now = session.ctx().home().await?.now();
    show(&revision_rows(record, &kept, now), &name_of(record), args)?;
    Ok(Exit::Done)
}

/// Returns the stored revisions and the other operations in the record, newest first.
fn revision_rows(
    record: &AddonInstallation,
    kept: &[StoredRevision],
    now: Timestamp,
) -> Vec<RevisionRow> {
    let earlier = kept.iter().skip(1).map(Some);
    let stored = kept.iter().zip(earlier.chain([None]));
    let stored = stored.map(|(revision, before)| RevisionRow {
        revision: Some(revision.number),
        rollback_to: revision.rollback_to,
        changed: before.map_or_else(Vec::new, |before| words::list_changes(before, revision)),
        ..RevisionRow::new(&revision.operation)
    });
    let mut rows: Vec<RevisionRow> = stored.collect();
    let status = record.status.as_ref();
    let ended = status.into_iter().flat_map(|status| &status.history);
    let is_kept = |ended: &&HistoryEntry| kept.iter().any(|one| one.operation == **ended);
    rows.extend(ended.filter(|ended| !is_kept(ended)).map(RevisionRow::new));
    rows.extend(running_operation(record, now));
    rows.sort_by_key(|row| std::cmp::Reverse(row.at));
    rows
}

/// Returns the operation that has not ended: it is running, or it was interrupted and not continued.
fn running_operation(record: &AddonInstallation, now: Timestamp) -> Option<RevisionRow> {
    let status = record.status.as_ref()?;
    let operation = status.operation.as_ref()?;
    let interrupted = HistoryEntry::from_interrupted(operation, status.installed.as_ref());
    let outcome = match operation.is_alive_at(now) {
        true => "in progress".to_owned(),
        false => interrupted.outcome.to_string(),
    };
    Some(RevisionRow {
        outcome,
        ..RevisionRow::new(&interrupted)
    })
}

impl RevisionRow {
    fn new(operation: &HistoryEntry) -> Self {
        let installed = &operation.installed;
        Self {
            revision: None,
            at: installed.at.as_ref().map(|at| at.0),
            by: installed.by.clone(),
            verb: operation.verb.clone(),
            rollback_to: None,
            version: installed.version.clone(),
            id: installed.id.clone(),
            outcome: operation.outcome.to_string(),
            changed: Vec::new(),
            label: version_label(installed),
        }
    }
}

fn show(rows: &[RevisionRow], name: &InstallationName, args: &HistoryArgs) -> Result<()> {
    match args.output.format {
        OutputFormat::Value(_) => {
            output::print_value(&ItemList { items: rows }, args.output)?;
        }
        OutputFormat::Name => {
            let numbers = rows.iter().filter_map(|row| row.revision);
            let names: Vec<String> = numbers.map(|number| revision_name(name, number)).collect();
            output::print_names("controllerrevision.apps", names.iter().map(String::as_str));
        }
        OutputFormat::Table | OutputFormat::Wide if rows.is_empty() => {
            output::note(&format!("{} has no revisions yet", name.name));
        }
        OutputFormat::Table | OutputFormat::Wide => output::print_painted(&table(rows, args)),
    }
    Ok(())
}

fn table(rows: &[RevisionRow], args: &HistoryArgs) -> String {
    let is_wide = args.output.format == OutputFormat::Wide;
    let mut table = Table::new(&[
        "REVISION", "AGE", "BY", "VERB", "VERSION", "OUTCOME", "CHANGED",
    ]);
    let now = Timestamp::now();
    let cell = |text: &str| match is_wide {
        true => text.to_owned(),
        false => shorten_status(text),
    };
    for row in rows {
        let verb = match row.rollback_to {
            Some(number) => format!("{} to {number}", row.verb),
            None => row.verb.to_string(),
        };
        table.add_row(vec![
            row.revision.map_or_else(String::new, |it| it.to_string()),
            row.at.map_or_else(String::new, |at| age(at, now)),
            match is_wide {
                true => row.by.clone(),
                false => words::holder_name(&row.by).to_owned(),
            },
            verb,
            row.label.clone(),
            cell(&row.outcome),
            cell(&row.changed.join(", ")),
        ]);
    }
    table.render_listing(args.output)
}
