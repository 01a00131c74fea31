//! `catalogue sync [NAME…]`

use addons_distribution::sync::{self, SyncedCatalogue};
use addons_operation::catalogue::find_named;
use addons_sources::title;
use anyhow::Result;
use common::api::catalogue::AddonCatalogue;
use common::catalogue::is_copy;
use serde::Serialize;

use super::objects;
use crate::cli::OutputFormat;
use crate::cli::reading::CatalogueSyncArgs;
use crate::exit::Exit;
use crate::failure;
use crate::output::{self, ItemList};
use crate::session::Session;
use crate::words::hint;

/// The result for a catalogue.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SyncRow {
    name: String,
    from: Option<String>,
    result: SyncResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The result of a sync.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum SyncResult {
    Changed,
    Unchanged,
    Failed,
}

/// Syncs catalogues from their sources: the named ones, or all that have a source. A catalogue that fails keeps its add-ons. Returns the
/// worst exit code.
///
/// # Errors
/// A catalogue does not exist, or the server cannot be reached.
pub async fn run(session: &Session, args: &CatalogueSyncArgs) -> Result<Exit> {
    let existing = session.ctx().catalogues().await?;
    let objects: Vec<&AddonCatalogue> = if args.names.is_empty() {
        let all = existing.iter();
        all.filter(|object| object.spec.from.is_some() && !is_copy(&object.metadata))
            .collect()
    } else {
        let mut named = Vec::new();
        for name in &args.names {
            named.push(find_named(existing, name)?);
        }
        named
    };
    if objects.is_empty() {
        let add = hint::indent_lines(&hint::fix_line(
            "kubectl addons catalogue add https://HOST/FILE",
        ));
        output::note(&format!("no catalogue says where it comes from{add}"));
    }
    let mut worst = Exit::Done;
    let mut rows = Vec::new();
    for object in objects {
        let (row, exit) = sync_one(session, object).await;
        worst = worst.max(exit);
        rows.push(row);
    }
    match args.output.format {
        OutputFormat::Value(_) => {
            output::print_value(&ItemList { items: &rows }, args.output.format)?
        }
        OutputFormat::Name => {
            output::print_names(super::show::KIND, rows.iter().map(|row| row.name.as_str()))
        }
        OutputFormat::Table | OutputFormat::Wide => {}
    }
    Ok(worst)
}

/// Syncs a catalogue, and reports the result on stderr.
pub(super) async fn sync_one(session: &Session, object: &AddonCatalogue) -> (SyncRow, Exit) {
    let name = objects::catalogue_name(object).to_owned();
    let from = object.spec.from.as_ref();
    let from = from.map(|from| title(&from.to_source()));
    match sync::sync(session.ctx(), object, false).await {
        Ok(synced) => {
            output::note(&describe_synced(&synced));
            let result = match synced.is_changed {
                true => SyncResult::Changed,
                false => SyncResult::Unchanged,
            };
            let row = SyncRow {
                name,
                from,
                result,
                revision: Some(synced.revision),
                problem: None,
            };
            (row, Exit::Done)
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            let problem = output::describe_chain(error.as_ref());
            let exit = failure::report_failure(&error);
            let row = SyncRow {
                name,
                from,
                result: SyncResult::Failed,
                revision: None,
                problem: Some(problem),
            };
            (row, exit)
        }
    }
}

fn describe_synced(synced: &SyncedCatalogue) -> String {
    let (object, revision) = (&synced.object, &synced.revision);
    let name = objects::catalogue_name(object);
    if synced.is_changed {
        let counts = objects::count_content(object);
        format!("catalogue {name} changed: {counts}, revision {revision}")
    } else {
        format!("catalogue {name} is up to date: revision {revision}")
    }
}
