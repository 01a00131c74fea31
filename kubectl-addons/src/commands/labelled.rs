//! Selects installations by labels: `-l` of `list` and `status`.

use std::borrow::Borrow;

use addons_engine::record;
use addons_operation::{Context, name_of};
use anyhow::Result;
use common::api::installation::AddonInstallation;

/// Keeps the installations that match the selector.
///
/// # Errors
/// The server cannot be reached, or refuses the request, for example because of a malformed selector.
pub(super) async fn retain_matching<R: Borrow<AddonInstallation>>(
    ctx: &Context,
    namespace: Option<&str>,
    selector: &str,
    records: &mut Vec<R>,
) -> Result<()> {
    let labelled = record::list_labelled(ctx.home().await?, namespace, selector).await?;
    records.retain(|record| labelled.contains(&name_of(record.borrow())));
    Ok(())
}
