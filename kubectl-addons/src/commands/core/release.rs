//! `core release`: releases core add-ons.

use addons_distribution::core_set::release::{release, release_cluster};
use addons_operation::{Records, name_of};
use anyhow::Result;
use common::api::installation::core_guard::is_guarded;

use crate::cli::core::CoreReleaseArgs;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::session::Session;
use crate::words::core as words;

/// Releases installations, or all core add-ons of a cluster that is being deleted.
///
/// # Errors
/// The installation does not exist or is not a core add-on, the verdict is a denial, or the server refuses.
pub async fn run(session: &Session, args: &CoreReleaseArgs) -> Result<Exit> {
    let ctx = session.ctx();
    if args.cluster_deleting {
        let freed = release_cluster(ctx).await?;
        output::note(&words::describe_cluster_release(
            ctx.settings().records_namespace(),
            &freed,
        ));
        return Ok(Exit::Done);
    }
    let known = Records::read(ctx).await?;
    let records = known.find_all(&args.names, session.global().namespace.as_deref())?;
    if let Some(other) = records.iter().find(|record| !record.spec.core_addon) {
        let name = name_of(other);
        return Err(UsageError(format!("{name}: spec.coreAddon: it is not a core add-on")).into());
    }
    for record in records {
        let is_new = release(ctx, record).await?;
        let line = words::describe_release(&name_of(record), is_new, is_guarded(record));
        output::note(&line);
    }
    Ok(Exit::Done)
}
