//! `export NAME[@VERSION]… -o FILE`: writes everything that add-ons need into one archive for a site without internet.

use anyhow::{Context as _, Result};
use common::catalogue::CatalogueEntry;
use common::catalogue::author::Typed;

use super::chosen::{self, LookupScope};
use super::images::{choose_fitting, choose_named};
use crate::cli::airgap::ExportArgs;
use crate::exit::Exit;
use crate::session::Session;
use crate::words::airgap;
use crate::{choices, interrupt, output};
use addons_airgap::export::{ExportRequest, export};

/// Writes an archive. With `--all`, names the add-ons that do not fit. If there is nothing to export, no archive is written and the exit
/// code is 5.
///
/// # Errors
/// An add-on is unknown or does not fit, or a source, an image or a file cannot be read or written.
pub async fn run(session: &Session, args: &ExportArgs) -> Result<Exit> {
    let catalogue = session
        .ctx()
        .catalogue(&choices::parse_offer(&args.source))
        .await?;
    chosen::warn_of_unread(&catalogue);
    // Export the sources that the catalogue names: the site rewrites them.
    let offered = LookupScope {
        source: &args.source,
        registry: None,
        fit: &args.fit,
    };
    let entries: Vec<CatalogueEntry> = if args.all {
        let facts = chosen::fit_facts(session, &catalogue, &args.fit).await?;
        let fitting = choose_fitting(session, &catalogue, &facts, false);
        for (addon, reason) in &fitting.left_out {
            output::note(&format!("left out: {addon}: {reason}"));
        }
        if fitting.entries.is_empty() && args.images.is_empty() {
            output::note(
                "error: nothing to export: no add-on fits (core add-ons are exported by name)",
            );
            return Ok(Exit::DoesNotFit);
        }
        fitting.entries
    } else {
        choose_named(session, &offered, &args.addons).await?
    };
    let indexes: Vec<Typed> = args.source.channel.iter().cloned().collect();
    let request = ExportRequest {
        entries: &entries,
        kubernetes: args.fit.k8s.as_deref(),
        images: &args.images,
        without_images: args.charts_only,
        indexes: &indexes,
    };
    let report = |progress| output::note(&airgap::describe_progress(&progress));
    let archive = args.archive.as_path();
    interrupt::set_last_words(airgap::export_interrupted(archive));
    let exported = export(session.ctx(), &request, archive, &report).await;
    let exported = exported.with_context(|| archive.display().to_string())?;
    output::note(&airgap::describe_export(archive, &exported));
    Ok(Exit::Done)
}
