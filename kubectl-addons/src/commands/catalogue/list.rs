//! `catalogue list`

use anyhow::Result;
use common::api::catalogue::{AddonCatalogue, CatalogueClass};
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::Format;
use crate::cli::reading::CatalogueList;
use crate::exit::Exit;
use crate::output::{self, Items, age::age, table::Table};
use crate::session::Session;
use crate::words::hint;

/// One catalogue.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    namespace: String,
    class: CatalogueClass,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "baseURL")]
    base_url: Option<String>,
    addons: usize,
    versions: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Timestamp>,
}

/// Lists the catalogues; those of class Core only with `--core`.
///
/// # Errors
/// The server cannot be reached, or refuses.
pub async fn run(session: &Session, args: &CatalogueList) -> Result<Exit> {
    let objects = session.ctx().catalogues().await?.iter();
    let visible = objects.filter(|object| args.core || object.spec.class != CatalogueClass::Core);
    let rows: Vec<Row> = visible.map(row).collect();
    match args.output.format {
        Format::Json | Format::Yaml => output::value(&Items { items: &rows }, args.output.format)?,
        Format::Name => output::names(super::show::KIND, rows.iter().map(|row| row.name.as_str())),
        Format::Table | Format::Wide if rows.is_empty() => {
            let add = hint::below(&hint::fix("kubectl addons catalogue add FILE"));
            output::note(&format!("no catalogues{add}"));
        }
        Format::Table | Format::Wide => output::data(&table(&rows).render()),
    }
    Ok(Exit::Done)
}

fn row(object: &AddonCatalogue) -> Row {
    Row {
        name: super::name(object).to_owned(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        class: object.spec.class,
        base_url: object.spec.base_url.clone(),
        addons: object.spec.addons.len(),
        versions: object
            .spec
            .addons
            .iter()
            .map(|addon| addon.versions.len())
            .sum(),
        created_at: object
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0),
    }
}

fn table(rows: &[Row]) -> Table {
    let now = Timestamp::now();
    let mut table = Table::new(&["NAME", "CLASS", "ADD-ONS", "VERSIONS", "AGE", "BASE"]);
    for row in rows {
        table.row(vec![
            row.name.clone(),
            format!("{:?}", row.class),
            row.addons.to_string(),
            row.versions.to_string(),
            row.created_at
                .map(|created| age(created, now))
                .unwrap_or_default(),
            row.base_url.clone().unwrap_or_default(),
        ]);
    }
    table
}
