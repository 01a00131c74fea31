//! Commands of a user who may only write records: the reconciler does the rest.

use addons_operation::delegate::{self, DelegatedChange, Unavailable};
use addons_operation::{Resolution, Resolver, name_of};
use anyhow::Result;

use crate::cli::operation::{DryRunMode, RunArgs};
use crate::exit::{Exit, UsageError};
use crate::prompt::confirm;
use crate::session::Session;
use crate::words::delegated as words;
use crate::{change, output, partial};

/// Returns what the user may not do, so that the reconciler does it; `None` if the user can do all of it.
///
/// # Errors
/// The cluster of the objects cannot be connected to; the command works on several clusters.
pub async fn find_unavailable(session: &Session) -> Result<Option<Unavailable>> {
    let unavailable = delegate::find_unavailable(session.ctx()).await?;
    match (unavailable, session.turn()) {
        (Some(Unavailable::Cluster(error)), Some(_)) => Err(anyhow::Error::from(*error)),
        (Some(Unavailable::Content), Some(_)) => Err(UsageError(words::ONE_CLUSTER.into()).into()),
        (unavailable, _) => Ok(unavailable),
    }
}

/// Writes the records of installations.
///
/// # Errors
/// The user declined, or there is no terminal to ask on; a record cannot be written.
pub async fn write(
    session: &Session,
    resolution: Resolution,
    why: &Unavailable,
    run: &RunArgs,
    dry_run: DryRunMode,
) -> Result<Exit> {
    let installations = partial::check_resolution(resolution, None)?.installations;
    let (changed, same): (Vec<_>, Vec<_>) = installations
        .iter()
        .partition(|one| delegate::change_of(one) != DelegatedChange::None);
    for one in same {
        output::note(&format!("{}  nothing to record", one.name.name));
    }
    if changed.is_empty() {
        return Ok(Exit::Done);
    }
    let at = session.ctx().settings().records_namespace();
    output::note(&words::explain(why, at, &session.global().system_namespace));
    for one in &changed {
        output::note(&words::describe_change(one, delegate::change_of(one)));
    }
    if dry_run != DryRunMode::None {
        output::note(change::UNCHANGED);
        return Ok(Exit::Done);
    }
    if !run.yes {
        confirm("Record? [y/N] ")?;
    }
    for one in changed {
        let written = delegate::write(session.ctx(), one).await?;
        output::note(&words::describe_written(&one.name, written));
    }
    Ok(Exit::Done)
}

/// Asks for the deletion of the records with these names.
///
/// # Errors
/// As [`write()`]; the reconciler does not manage one of them.
pub async fn delete(
    session: &Session,
    resolver: &Resolver<'_>,
    names: &[String],
    why: &Unavailable,
    run: &RunArgs,
    dry_run: DryRunMode,
) -> Result<Exit> {
    let going = delegate::find_removable(resolver, names).await?;
    let at = session.ctx().settings().records_namespace();
    output::note(&words::explain(why, at, &session.global().system_namespace));
    for one in &going {
        output::note(&format!("uninstall {}", name_of(one).name));
    }
    if dry_run != DryRunMode::None {
        output::note(change::UNCHANGED);
        return Ok(Exit::Done);
    }
    if !run.yes {
        confirm("Uninstall? [y/N] ")?;
    }
    for one in &going {
        delegate::delete(session.ctx(), one).await?;
        let written = DelegatedChange::Delete;
        output::note(&words::describe_written(&name_of(one), written));
    }
    Ok(Exit::Done)
}
