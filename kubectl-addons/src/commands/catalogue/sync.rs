//! `catalogue sync [NAME…]`

use addons_operation::distribution::sync::{self, Synced};
use addons_sources::title;
use anyhow::Result;
use common::api::catalogue::AddonCatalogue;
use common::catalogue::is_copy;
use serde::Serialize;

use crate::cli::Format;
use crate::cli::reading::CatalogueSync;
use crate::exit::Exit;
use crate::output::{self, Items};
use crate::session::Session;
use crate::words::hint;

/// The result for a catalogue.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    name: String,
    from: Option<String>,
    result: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The result of a sync.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Changed,
    Unchanged,
    Failed,
}

/// Syncs catalogues from their sources: the named ones, or all that have a source. A catalogue that fails keeps its add-ons. Returns the
/// worst exit code.
///
/// # Errors
/// A catalogue does not exist, or the server cannot be reached.
pub async fn run(session: &Session, args: &CatalogueSync) -> Result<Exit> {
    let existing = session.ctx().catalogues().await?;
    let objects: Vec<&AddonCatalogue> = if args.names.is_empty() {
        let all = existing.iter();
        all.filter(|object| object.spec.from.is_some() && !is_copy(&object.metadata))
            .collect()
    } else {
        let names = args.names.iter();
        let named: Result<Vec<_>> = names.map(|name| super::named(existing, name)).collect();
        named?
    };
    if objects.is_empty() {
        let add = hint::below(&hint::fix("kubectl addons catalogue add https://HOST/FILE"));
        output::note(&format!("no catalogue says where it comes from{add}"));
    }
    let mut worst = Exit::Done;
    let mut rows = Vec::new();
    for object in objects {
        let (row, exit) = one(session, object).await;
        worst = worst.max(exit);
        rows.push(row);
    }
    match args.output.format {
        Format::Json | Format::Yaml | Format::Template(_) => {
            output::value(&Items { items: &rows }, args.output.format)?
        }
        Format::Name => output::names(super::show::KIND, rows.iter().map(|row| row.name.as_str())),
        Format::Table | Format::Wide => {}
    }
    Ok(worst)
}

/// Syncs a catalogue, and reports the result on stderr.
pub(super) async fn one(session: &Session, object: &AddonCatalogue) -> (Row, Exit) {
    let name = super::name(object).to_owned();
    let from = object.spec.from.as_ref();
    let from = from.map(|from| title(&from.source()));
    match sync::sync(session.ctx(), object, false).await {
        Ok(synced) => {
            output::note(&done(&synced));
            let result = match synced.is_changed {
                true => Outcome::Changed,
                false => Outcome::Unchanged,
            };
            let row = Row {
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
            let problem = output::chain(error.as_ref());
            let exit = output::failure(&error);
            let row = Row {
                name,
                from,
                result: Outcome::Failed,
                revision: None,
                problem: Some(problem),
            };
            (row, exit)
        }
    }
}

fn done(synced: &Synced) -> String {
    let (object, revision) = (&synced.object, &synced.revision);
    let name = super::name(object);
    if synced.is_changed {
        let counts = super::counts(object);
        format!("catalogue {name} changed: {counts}, revision {revision}")
    } else {
        format!("catalogue {name} is up to date: revision {revision}")
    }
}
