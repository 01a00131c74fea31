//! `catalogue list`

use addons_sources::title;
use anyhow::Result;
use common::age::age;
use common::api::catalogue::{AddonCatalogue, CatalogueClass};
use common::api::conditions::SYNCED;
use jiff::Timestamp;
use serde::Serialize;

use super::objects;
use crate::cli::OutputFormat;
use crate::cli::reading::CatalogueListArgs;
use crate::exit::Exit;
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use crate::words::hint;

/// How many characters of a revision the table shows.
const REVISION_CHARACTERS: usize = 12;

/// A catalogue.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CatalogueRow {
    name: String,
    namespace: String,
    class: CatalogueClass,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "baseURL")]
    base_url: Option<String>,
    /// The source that the catalogue is synced from.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// The revision of the source at the last sync.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    /// Why the last sync failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The digest of its file, if the catalogue is by reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    addons: usize,
    /// Absent for a catalogue by reference: the versions are in its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Timestamp>,
}

/// Lists the catalogues. Those of class Core only with `--core`.
///
/// # Errors
/// The server cannot be reached, or refuses the request.
pub async fn run(session: &Session, args: &CatalogueListArgs) -> Result<Exit> {
    let objects = session.ctx().catalogues().await?.iter();
    let visible = objects.filter(|object| args.core || object.spec.class != CatalogueClass::Core);
    let rows: Vec<CatalogueRow> = visible.map(catalogue_row).collect();
    match args.output.format {
        OutputFormat::Value(_) => output::print_value(&ItemList { items: &rows }, args.output)?,
        OutputFormat::Name => {
            output::print_names(super::show::KIND, rows.iter().map(|row| row.name.as_str()))
        }
        OutputFormat::Table | OutputFormat::Wide if rows.is_empty() => {
            let add = hint::indent_lines(&hint::fix_line("kubectl addons catalogue add FILE"));
            output::note(&format!("no catalogues{add}"));
        }
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_painted(&table(&rows).render_listing(args.output))
        }
    }
    Ok(Exit::Done)
}

fn catalogue_row(object: &AddonCatalogue) -> CatalogueRow {
    let from = object.spec.from.as_ref();
    let status = object.status.as_ref();
    let synced = status.and_then(|status| status.synced.as_ref());
    let mut conditions = status.iter().flat_map(|status| &status.conditions);
    let problem = conditions.find(|it| it.r#type == SYNCED && it.status == "False");
    let problem = problem.map(|condition| condition.message.clone());
    let unreadable = object.spec.unreadable.as_ref().map(ToString::to_string);
    let digest = object.spec.reference();
    let addons = object.spec.addons.iter();
    let versions = || addons.map(|addon| addon.versions.len()).sum();
    CatalogueRow {
        name: objects::catalogue_name(object).to_owned(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        class: object.spec.class,
        base_url: object.spec.base_url.clone(),
        from: from.map(|from| title(&from.to_source())),
        revision: synced.map(|synced| synced.revision.clone()),
        problem: unreadable.or(problem),
        addons: object.spec.addons.len(),
        versions: digest.is_none().then(versions),
        digest: digest.map(str::to_owned),
        created_at: object
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0),
    }
}

fn table(rows: &[CatalogueRow]) -> Table {
    let now = Timestamp::now();
    let mut table = Table::new(&[
        "NAME", "CLASS", "ADD-ONS", "VERSIONS", "AGE", "SYNCED", "BASE",
    ]);
    for row in rows {
        table.add_row(vec![
            row.name.clone(),
            format!("{:?}", row.class),
            row.addons.to_string(),
            row.versions
                .map_or("-".to_owned(), |count| count.to_string()),
            row.created_at
                .map(|created| age(created, now))
                .unwrap_or_default(),
            describe_synced(row),
            row.base_url.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// Shortens the revision as git does, or returns `failed`.
fn describe_synced(row: &CatalogueRow) -> String {
    if row.problem.is_some() {
        return "failed".to_owned();
    }
    let revision = row.revision.as_deref().unwrap_or_default();
    let hex = revision.strip_prefix("sha256:").unwrap_or(revision);
    hex.chars().take(REVISION_CHARACTERS).collect()
}
