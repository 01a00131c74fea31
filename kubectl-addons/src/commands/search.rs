//! `search [WORD…]`: lists what can be installed, and whether it fits.

use anyhow::Result;
use common::api::catalogue::{CatalogueClass, Deprecation, Support};
use common::catalogue::select::{
    ClusterVersions, EntryRequest, RejectionReason, Selection, SelectionRules, select,
};
use common::catalogue::{Catalogue, CatalogueEntry, Origin};
use serde::Serialize;

use super::chosen;
use crate::choices;
use crate::cli::reading::{ListArgs, SearchArgs};
use crate::cli::{Listing, OutputFormat};
use crate::exit::Exit;
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use crate::words::{self, hint};

/// An add-on: the entry that would be installed, or why there is none.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchRow {
    name: String,
    fits: bool,
    /// The version of the entry that fits, or absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(flatten)]
    origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    support: Option<Support>,
    /// Set if the entry is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<Deprecation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Why nothing fits, for the best entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Lists the add-ons whose name or description contains every word.
///
/// # Errors
/// The catalogues or the index cannot be read, or without `--k8s` the server does not respond.
pub async fn run(session: &Session, args: &SearchArgs) -> Result<Exit> {
    let catalogue = session
        .ctx()
        .catalogue(&choices::parse_offer(&args.source))
        .await?;
    let mut catalogue = Catalogue::clone(&catalogue);
    let words: Vec<String> = args.words.iter().map(|word| word.to_lowercase()).collect();
    let is_shown = |class| args.core || class != CatalogueClass::Core;
    catalogue
        .entries
        .retain(|entry| is_shown(entry.class) && matches_words(entry, &words));
    catalogue.unread.retain(|unread| is_shown(unread.class));
    chosen::warn_of_unread(&catalogue);
    let facts = chosen::fit_facts(session, &catalogue, &args.fit).await?;
    let rows = search_rows(&catalogue, &facts, session.rules());
    print(&rows, args.output, true, || describe_no_match(&words))
}

/// Lists one version of each add-on that fits a cluster and can be installed: `list --available`.
///
/// # Errors
/// As [`run`], or a namespace stands for no cluster.
pub async fn run_available(session: &Session, args: &ListArgs) -> Result<Exit> {
    let asked = &args.available;
    let catalogue = session
        .ctx()
        .catalogue(&choices::parse_offer(&asked.source))
        .await?;
    let mut catalogue = Catalogue::clone(&catalogue);
    let is_shown = |class| args.core == (class == CatalogueClass::Core);
    catalogue.entries.retain(|entry| is_shown(entry.class));
    catalogue.unread.retain(|unread| is_shown(unread.class));
    chosen::warn_of_unread(&catalogue);
    let facts = chosen::fit_facts(session, &catalogue, &asked.fit).await?;
    let mut rows = search_rows(&catalogue, &facts, session.rules());
    rows.retain(|row| row.fits);
    print(&rows, args.output, false, || {
        format!(
            "nothing fits{}",
            hint::indent_lines(&hint::look_line("kubectl addons search"))
        )
    })
}

/// Prints the rows. `fits` adds a column that says whether an add-on fits. Without it, all do.
fn print(
    rows: &[SearchRow],
    asked: Listing,
    fits: bool,
    nothing: impl FnOnce() -> String,
) -> Result<Exit> {
    match asked.format {
        OutputFormat::Value(_) => output::print_value(&ItemList { items: rows }, asked)?,
        OutputFormat::Name => {
            output::print_names("addon", rows.iter().map(|row| row.name.as_str()))
        }
        OutputFormat::Table | OutputFormat::Wide if rows.is_empty() => output::note(&nothing()),
        format => output::print_painted(
            &table(rows, fits, format == OutputFormat::Wide).render_listing(asked),
        ),
    }
    Ok(Exit::Done)
}

fn describe_no_match(words: &[String]) -> String {
    if words.is_empty() {
        let add = hint::indent_lines(&hint::fix_line("kubectl addons catalogue add FILE"));
        format!("no add-ons{add}")
    } else {
        format!("no add-on with {}", words.join(" "))
    }
}

/// Whether the name or the description contains every word (lower case).
fn matches_words(entry: &CatalogueEntry, words: &[String]) -> bool {
    let name = entry.addon.to_lowercase();
    let description = entry
        .description
        .as_deref()
        .unwrap_or_default()
        .to_lowercase();
    words
        .iter()
        .all(|word| name.contains(word) || description.contains(word))
}

fn search_rows(
    catalogue: &Catalogue,
    facts: &ClusterVersions,
    rules: SelectionRules,
) -> Vec<SearchRow> {
    let of_name = |name: &&str| {
        let request = EntryRequest {
            addon: name,
            ..EntryRequest::default()
        };
        search_row(&select(catalogue, &request, facts, rules))
    };
    catalogue.names().iter().filter_map(of_name).collect()
}

fn search_row(selection: &Selection) -> Option<SearchRow> {
    let best = selection.rejections.first();
    let entry = selection
        .chosen
        .as_ref()
        .or(best.map(|rejection| &rejection.entry))?;
    let of_chosen =
        |text: &str| (selection.chosen.is_some() && !text.is_empty()).then(|| text.to_owned());
    Some(SearchRow {
        name: entry.addon.clone(),
        fits: selection.chosen.is_some(),
        version: of_chosen(&entry.version.version),
        id: of_chosen(&entry.version.id),
        origin: entry.origin.as_ref().clone(),
        support: entry.support,
        deprecated: entry.deprecated.clone(),
        description: entry.description.clone(),
        reason: match &selection.chosen {
            Some(_) => None,
            None => best.map(|rejection| describe_reason(&rejection.reason)),
        },
    })
}

/// Formats a reason: `needs Kubernetes >=1.37.0, this is 1.36.3`.
fn describe_reason(reason: &RejectionReason) -> String {
    match reason {
        RejectionReason::DoesNotMatch {
            field,
            range,
            version,
        } => {
            let what = if *field == "kkpVersion" {
                "KKP"
            } else {
                "Kubernetes"
            };
            format!("needs {what} {range}, this is {version}")
        }
        other => other.to_string(),
    }
}

fn table(rows: &[SearchRow], fits: bool, wide: bool) -> Table {
    let mut header = vec!["NAME", "VERSION"];
    if fits {
        header.push("FITS");
    }
    header.extend(["CATALOGUE", "SUPPORT"]);
    if wide {
        header.push("ID");
    }
    header.push("DESCRIPTION");
    let mut table = Table::new(&header);
    for row in rows {
        let support = row
            .support
            .map(|support| format!("{support:?}"))
            .unwrap_or_default();
        let version = row.version.as_deref().unwrap_or_default();
        let marks = row.deprecated.iter().map(|_| words::DEPRECATED);
        let mut cells = vec![row.name.clone(), words::marked(version, marks)];
        if fits {
            cells.push(if row.fits { "yes" } else { "no" }.to_owned());
        }
        cells.extend([words::short_origin(&row.origin), support]);
        if wide {
            cells.push(row.id.clone().unwrap_or_default());
        }
        let words = row.reason.as_ref().or(row.description.as_ref());
        cells.push(words.cloned().unwrap_or_default());
        table.add_row(cells);
    }
    table
}
