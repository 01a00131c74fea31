//! `core release`: releases core add-ons.

use addons_distribution::core_set::release::{release, release_cluster};
use addons_operation::{Records, name_of};
use anyhow::Result;
use common::api::installation::AddonInstallation;
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
    release_records(session, records).await?;
    Ok(Exit::Done)
}

/// Releases the named add-ons in one of several clusters, which may lack some of them. Returns how many it has.
///
/// # Errors
/// As [`run`], except that the cluster may lack an add-on.
pub async fn release_found(session: &Session, args: &CoreReleaseArgs) -> Result<usize> {
    if args.cluster_deleting {
        let why = "--cluster-deleting releases one cluster: use -n NAMESPACE";
        return Err(UsageError(why.to_owned()).into());
    }
    let known = Records::read(session.ctx()).await?;
    let records = known.in_namespace(session.global().namespace.as_deref());
    let is_named = |record: &&AddonInstallation| args.names.contains(&name_of(record).name);
    let records: Vec<_> = records.filter(is_named).collect();
    let found = records.len();
    release_records(session, records).await?;
    Ok(found)
}

/// Returns the exit code of a release in several clusters.
///
/// # Errors
/// No cluster has any of the add-ons.
pub fn conclude(found: &[(String, usize)], failed: Exit, args: &CoreReleaseArgs) -> Result<Exit> {
    if failed == Exit::Done && found.iter().all(|(_, found)| *found == 0) {
        let names = args.names.join(", ");
        return Err(UsageError(format!("no selected cluster has {names}")).into());
    }
    Ok(failed)
}

async fn release_records(session: &Session, records: Vec<&AddonInstallation>) -> Result<()> {
    if let Some(other) = records.iter().find(|record| !record.spec.core_addon) {
        let name = name_of(other);
        return Err(UsageError(format!("{name}: spec.coreAddon: it is not a core add-on")).into());
    }
    for record in records {
        let is_new = release(session.ctx(), record).await?;
        let line = words::describe_release(&name_of(record), is_new, is_guarded(record));
        output::note(&line);
    }
    Ok(())
}
