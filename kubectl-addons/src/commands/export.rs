//! `export NAME[@VERSION]… -o FILE`: writes everything that add-ons need into one archive for a site without internet.

use anyhow::{Context as _, Result};
use common::catalogue::Entry;
use common::catalogue::author::Typed;

use super::chosen::Offered;
use super::images::{fitting, named};
use crate::choices;
use crate::cli::airgap::Export;
use crate::exit::Exit;
use crate::interrupt;
use crate::output;
use crate::session::Session;
use crate::words::airgap;
use addons_airgap::export::{Request, export};

/// Writes an archive. With `--all`, names the add-ons that do not fit. If there is nothing to export, no archive is written and the exit
/// code is 5.
///
/// # Errors
/// An add-on is unknown or does not fit, or a source, an image or a file cannot be read or written.
pub async fn run(session: &Session, args: &Export) -> Result<Exit> {
    let catalogue = session
        .ctx()
        .catalogue(&choices::offer(&args.source))
        .await?;
    super::warn_of_unread(&catalogue);
    // Export the sources that the catalogue names: the site rewrites them.
    let offered = Offered {
        source: &args.source,
        registry: None,
        fit: &args.fit,
    };
    let entries: Vec<Entry> = if args.all {
        let facts = super::facts(session, &catalogue, &args.fit).await?;
        let fitting = fitting(session, &catalogue, &facts, false);
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
        named(session, &offered, &args.addons).await?
    };
    let indexes: Vec<Typed> = args.source.channel.iter().cloned().collect();
    let request = Request {
        entries: &entries,
        kubernetes: args.fit.k8s.as_deref(),
        images: &args.images,
        indexes: &indexes,
    };
    let report = |progress| output::note(&airgap::progress(&progress));
    let archive = args.archive.as_path();
    interrupt::on_end(airgap::export_interrupted(archive));
    let exported = export(session.ctx(), &request, archive, &report).await;
    let exported = exported.with_context(|| archive.display().to_string())?;
    output::note(&airgap::exported(archive, &exported));
    Ok(Exit::Done)
}
