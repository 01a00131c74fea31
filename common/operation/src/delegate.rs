//! Leaves installations to the reconciler: the caller may write their records, but may not use the kubeconfig of their cluster, or not read
//! the catalogues with their content (semantics 17.10).

use addons_engine::error::StaleReason;
use addons_engine::{EngineError, record};
use common::api::installation::AddonInstallation;
use common::api::names::{FINALIZER_UNINSTALL, InstallationName};

use crate::context::Context;
use crate::error::OperationError;
use crate::plan::uninstall::check_removal;
use crate::records::name_of;
use crate::resolve::Resolver;
use crate::resolve::resolved::Resolved;

/// What the caller may not do, so that the reconciler does it.
#[derive(Debug)]
pub enum Unavailable {
    /// The Secret with the kubeconfig of the cluster may not be read.
    Cluster(Box<OperationError>),
    /// The catalogues may not be read: the copy for the cluster lists what fits it, without content.
    Content,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelegatedChange {
    /// A new record.
    Create,
    /// Another spec.
    Update,
    /// Nothing: the record already says it.
    None,
    /// The deletion of the record, which waits until the objects are deleted.
    Delete,
}

/// Returns what the caller may not do for installations of the namespace of the command, or `None` if the caller can do all of it.
///
/// # Errors
/// The cluster of the objects cannot be connected to for any other reason.
pub async fn find_unavailable(ctx: &Context) -> Result<Option<Unavailable>, OperationError> {
    if let Some(error) = ctx.why_out_of_reach().await? {
        return Ok(Some(Unavailable::Cluster(Box::new(error))));
    }
    Ok(ctx.reads_compatible_only().then_some(Unavailable::Content))
}

/// Returns what writing the record of a resolved installation would change.
#[must_use]
pub fn change_of(resolved: &Resolved) -> DelegatedChange {
    match &resolved.existing {
        None => DelegatedChange::Create,
        Some(existing) if existing.spec == resolved.wanted.spec => DelegatedChange::None,
        Some(_) => DelegatedChange::Update,
    }
}

/// Writes the record of a resolved installation, if it is new or changed.
///
/// # Errors
/// Those of the request; a conflict if another client wrote the record meanwhile; the webhook denies it.
pub async fn write(ctx: &Context, resolved: &Resolved) -> Result<DelegatedChange, OperationError> {
    let home = ctx.home().await?;
    match change_of(resolved) {
        DelegatedChange::Create => match record::create(home, &resolved.wanted).await? {
            Some(_) => Ok(DelegatedChange::Create),
            None => Err(stale(&resolved.name)),
        },
        DelegatedChange::Update => match record::replace(home, &resolved.wanted).await {
            Err(error) if error.is_conflict() => Err(stale(&resolved.name)),
            written => written.map(|_| DelegatedChange::Update).map_err(Into::into),
        },
        unchanged => Ok(unchanged),
    }
}

/// Returns the records with these names whose deletion the reconciler carries out, each before those that it requires.
///
/// # Errors
/// No such installation; the verdict is a denial; installations that stay require one of them; the reconciler does not manage one of them.
pub async fn find_removable(
    resolver: &Resolver<'_>,
    names: &[String],
) -> Result<Vec<AddonInstallation>, OperationError> {
    let namespace = resolver.ctx.settings().namespace.as_deref();
    let records = resolver.records.find_all(names, namespace)?;
    let records = check_removal(resolver, records, false).await?;
    for record in &records {
        let mut finalizers = record.metadata.finalizers.iter().flatten();
        let is_held = finalizers.any(|finalizer| finalizer == FINALIZER_UNINSTALL);
        if !is_held && record.installed().is_some() {
            return Err(OperationError::NotManaged(name_of(record)));
        }
    }
    Ok(records)
}

/// Asks for the deletion of a record. Its finalizer holds it until the reconciler has deleted its objects.
///
/// # Errors
/// Those of the request.
pub async fn delete(ctx: &Context, gone: &AddonInstallation) -> Result<(), OperationError> {
    match record::delete(ctx.home().await?, gone, false).await {
        Err(error) if error.is_conflict() => Err(stale(&name_of(gone))),
        other => Ok(other?),
    }
}

fn stale(name: &InstallationName) -> OperationError {
    EngineError::Stale {
        installation: name.to_string(),
        what: StaleReason::SpecChanged,
    }
    .into()
}
