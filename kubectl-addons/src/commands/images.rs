//! `images [NAME[@VERSION]…]`: lists all images of add-ons, sorted and without duplicates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_render::images::{find_images, find_mentions};
use anyhow::Result;
use common::api::catalogue::CatalogueClass;
use common::catalogue::select::{ClusterVersions, EntryRequest, RejectionReason, select};
use common::catalogue::{Catalogue, CatalogueEntry};
use common::manifest::Manifest;
use common::manifest::key::ObjectKey;
use serde::Serialize;

use super::chosen::{self, LookupScope};
use crate::choices;
use crate::cli::reading::ImagesArgs;
use crate::cli::{Listing, OutputFormat};
use crate::exit::Exit;
use crate::output::{self, ItemList, table::Table};
use crate::session::Session;
use addons_operation::render;

/// An image, and the add-ons that need it.
#[derive(Debug, Serialize)]
struct ImageRow {
    image: String,
    addons: BTreeSet<String>,
}

/// Lists the images of the named add-ons, or of all that fit. An add-on that cannot be read is named and the list is incomplete: exit code
/// 1.
///
/// # Errors
/// The catalogues or the index cannot be read, or a name is unknown or does not fit.
pub async fn run(session: &Session, args: &ImagesArgs) -> Result<Exit> {
    let catalogue = session
        .ctx()
        .catalogue(&choices::parse_offer(&args.source))
        .await?;
    chosen::warn_of_unread(&catalogue);
    let offered = LookupScope {
        source: &args.source,
        registry: args.site.registry.as_deref(),
        fit: &args.fit,
    };
    let entries = if args.addons.is_empty() {
        let facts = chosen::fit_facts(session, &catalogue, &args.fit).await?;
        let catalogue = chosen::rewrite_registry(Arc::clone(&catalogue), offered.registry);
        choose_fitting(session, &catalogue, &facts, args.core).entries
    } else {
        choose_named(session, &offered, &args.addons).await?
    };
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut is_complete = catalogue.unread.is_empty();
    for entry in entries {
        match render::render_entry(session.ctx(), &entry, args.fit.k8s.as_deref()).await {
            Ok(rendered) => {
                for manifest in &rendered.manifests {
                    collect_images(&entry, manifest, &mut found);
                }
            }
            Err(error) => {
                output::note(&format!("not listed: {}", error.chain()));
                is_complete = false;
            }
        }
    }
    let rows = found.into_iter();
    let rows: Vec<ImageRow> = rows
        .map(|(image, addons)| ImageRow { image, addons })
        .collect();
    print_images(&rows, args.output)?;
    Ok(if is_complete {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// Chooses the entries of the named add-ons.
pub(super) async fn choose_named(
    session: &Session,
    offered: &LookupScope<'_>,
    names: &[String],
) -> Result<Vec<CatalogueEntry>> {
    let mut entries = Vec::with_capacity(names.len());
    for name in names {
        entries.push(chosen::choose_entry(session, offered, name).await?.0);
    }
    Ok(entries)
}

/// The entry of each add-on that would be installed.
#[derive(Debug, Default)]
pub(super) struct FittingEntries {
    pub(super) entries: Vec<CatalogueEntry>,
    /// The add-ons that do not fit, with the reason for the newest version. They need no image.
    pub(super) left_out: Vec<(String, RejectionReason)>,
}

/// Chooses the entries that fit. With `core`, core add-ons too.
pub(super) fn choose_fitting(
    session: &Session,
    catalogue: &Catalogue,
    facts: &ClusterVersions,
    core: bool,
) -> FittingEntries {
    let is_wanted = |entry: &CatalogueEntry| core || entry.class != CatalogueClass::Core;
    let mut fitting = FittingEntries::default();
    let names: BTreeSet<&str> = catalogue.names().into_iter().collect();
    for addon in names {
        let request = EntryRequest {
            addon,
            ..EntryRequest::default()
        };
        let selection = select(catalogue, &request, facts, session.rules());
        match &selection.chosen {
            Some(entry) if is_wanted(entry) => fitting.entries.push(entry.clone()),
            Some(_) => {}
            None => {
                let newest = selection.newest_misfit();
                let newest = newest.or(selection.rejections.first());
                if let Some(newest) = newest.filter(|newest| is_wanted(&newest.entry)) {
                    let left_out = (addon.to_owned(), newest.reason.clone());
                    fitting.left_out.push(left_out);
                }
            }
        }
    }
    fitting
}

fn collect_images(
    entry: &CatalogueEntry,
    manifest: &Manifest,
    found: &mut BTreeMap<String, BTreeSet<String>>,
) {
    for image in find_images(&manifest.object) {
        found.entry(image).or_default().insert(entry.addon.clone());
    }
    for mention in find_mentions(&manifest.object) {
        let object = ObjectKey::from_object(&manifest.object)
            .map_or_else(String::new, |key| key.to_string());
        output::note(&format!(
            "warning: {}: {object}: {}, which may be an image and is not listed",
            entry.addon,
            mention.describe()
        ));
    }
}

fn print_images(rows: &[ImageRow], asked: Listing) -> Result<()> {
    match asked.format {
        OutputFormat::Value(_) => output::print_value(&ItemList { items: rows }, asked)?,
        OutputFormat::Wide => {
            let mut table = Table::new(&["IMAGE", "ADD-ONS"]);
            for row in rows {
                let addons: Vec<_> = row.addons.iter().map(String::as_str).collect();
                table.add_row(vec![row.image.clone(), addons.join(", ")]);
            }
            output::print_painted(&table.render_listing(asked));
        }
        // One image per line, for people and for loops in a shell.
        OutputFormat::Table | OutputFormat::Name => {
            let lines = rows.iter().map(|row| format!("{}\n", row.image));
            output::print_text(&lines.collect::<String>());
        }
    }
    Ok(())
}
