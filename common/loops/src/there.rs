//! Reconciles the installations of another cluster: those of one namespace together, so that its records and its version are read once
//! (semantics 6.3).

use std::sync::Arc;
use std::time::Instant;

use addons_engine::remote::RemoteError;
use addons_engine::{local, record};
use addons_operation::{Context, Interruption, OperationError, Resolver, name_of};
use common::api::installation::{AddonInstallation, DeletionPolicy};
use common::api::names::{FINALIZER_UNINSTALL, InstallationName};
use common::pin;
use common::target::Standing;
use futures::StreamExt as _;
use futures::stream;

use crate::done::{Done, Heard};
use crate::installation::{How, Outcome, left_alone, reconcile, write};
use crate::slots::{Lane, Slots};

/// One of several installations that are reconciled together.
pub(crate) struct OneOf {
    pub(crate) name: InstallationName,
    /// The lane in which it waits.
    pub(crate) lane: Lane,
    /// Its interruption.
    pub(crate) part: Interruption,
}

/// Reconciles installations of one namespace, and tells `see` when each of them waits and when it is done. `ctx`: the context of that
/// namespace; `slots`: the slots of its cluster, which other calls share.
pub(crate) async fn reconcile_together(
    ctx: &Context,
    all: &[OneOf],
    how: &How,
    interruption: &Interruption,
    slots: &Slots,
    see: &dyn Fn(Heard),
) {
    let begun = Instant::now();
    let done = |name: &InstallationName, found: Found| {
        see(Heard::Done(Box::new(Done {
            name: name.clone(),
            record: found.record,
            is_elsewhere: found.is_elsewhere,
            outcome: found.outcome,
            took: begun.elapsed(),
        })));
    };
    let resolver = match interruption.unless_asked(Resolver::of_records(ctx)).await {
        Ok(resolver) => resolver,
        Err(error) => {
            let names: Vec<_> = all.iter().map(|one| &one.name).collect();
            return lost(ctx, &names, error, how, interruption, &done).await;
        }
    };
    let work = async |one: &OneOf| {
        let (name, part) = (&one.name, &one.part);
        let working = async {
            let record = resolver.records.get(name)?;
            let freeing = let_go(ctx, record, None);
            let outcome = match part.unless_asked(freeing).await {
                Ok(false) => reconcile(ctx, &resolver, record, how, part).await,
                Ok(true) => Outcome::LetGo,
                Err(error) => Outcome::Failed(error),
            };
            let last = match &outcome {
                Outcome::Executed(_, report) => report.record.clone(),
                Outcome::LetGo => None,
                _ => Some(record.clone()),
            };
            Some(Found::new(last, outcome))
        };
        let waits = || see(Heard::Waits(name.clone()));
        let found = slots.work(one.lane, part, waits, working).await;
        done(name, found.unwrap_or_else(Found::gone));
    };
    stream::iter(all).for_each_concurrent(None, work).await;
}

/// The result for one installation.
struct Found {
    record: Option<AddonInstallation>,
    is_elsewhere: bool,
    outcome: Result<Outcome, OperationError>,
}

impl Found {
    fn new(record: Option<AddonInstallation>, outcome: Outcome) -> Self {
        Self {
            record,
            is_elsewhere: false,
            outcome: Ok(outcome),
        }
    }

    fn gone() -> Self {
        Self::new(None, Outcome::UpToDate)
    }

    /// The result if the namespace does not stand for a cluster.
    fn elsewhere() -> Self {
        Self {
            is_elsewhere: true,
            ..Self::gone()
        }
    }
}

/// Reports for each installation why its cluster cannot be worked on. This may stop at any point, because the next look reports it again.
async fn lost(
    ctx: &Context,
    names: &[&InstallationName],
    error: OperationError,
    how: &How,
    interruption: &Interruption,
    done: &dyn Fn(&InstallationName, Found),
) {
    let is_of_namespace = match error.root() {
        OperationError::NotLocal { .. } | OperationError::Remote(_) => true,
        OperationError::Interrupted(_) => false,
        // The namespace may stand for another cluster, even if that is not reached.
        _ => {
            let standing = interruption.unless_asked(ctx.standing()).await;
            matches!(standing, Ok(Standing::There(_)))
        }
    };
    let error = Arc::new(error);
    let again = |outcome| Found::new(None, outcome);
    let read = async {
        let home = ctx.home().await?;
        let namespace = ctx.settings().namespace.as_deref();
        Ok::<_, OperationError>(record::list(home, namespace).await?)
    };
    // A failure in this cluster, or before it is known where the namespace leads, says nothing about the records.
    let records = match is_of_namespace {
        true => interruption.unless_asked(read).await.ok(),
        false => None,
    };
    let Some(records) = records else {
        for &name in names {
            done(name, again(Outcome::Lost(Arc::clone(&error))));
        }
        return;
    };
    let is_nowhere = matches!(error.root(), OperationError::NotLocal { .. });
    for &name in names {
        let Some(record) = records.iter().find(|record| name_of(record) == *name) else {
            done(name, Found::gone());
            continue;
        };
        let find = async {
            let found = match let_go(ctx, record, Some(&error)).await? {
                true => again(Outcome::LetGo),
                false if is_nowhere && !pin::is_elsewhere(record) => Found::elsewhere(),
                false => {
                    let lost = || Outcome::Lost(Arc::clone(&error));
                    let outcome = left_alone(record).unwrap_or_else(lost);
                    write(ctx, record, &outcome, how).await?;
                    Found::new(Some(record.clone()), outcome)
                }
            };
            Ok::<_, OperationError>(found)
        };
        let failed = |error| Found::new(Some(record.clone()), Outcome::Failed(error));
        let found = interruption.unless_asked(find).await.unwrap_or_else(failed);
        done(name, found);
    }
}

/// Removes our finalizer from a record whose deletion must not wait for another cluster: the kubeconfig no longer exists, the objects are
/// to be left anyway, or the namespace is deleted with everything that is recorded in it. The cluster is left unchanged (semantics 14.6,
/// 15). Returns whether the finalizer was removed.
async fn let_go(
    ctx: &Context,
    record: &AddonInstallation,
    error: Option<&OperationError>,
) -> Result<bool, OperationError> {
    let metadata = &record.metadata;
    let mut finalizers = metadata.finalizers.iter().flatten();
    let is_ours = finalizers.any(|finalizer| finalizer == FINALIZER_UNINSTALL);
    let is_of_other = match error.map(OperationError::root) {
        None => ctx.is_remote().await?,
        Some(OperationError::NotLocal { .. }) => pin::is_elsewhere(record),
        Some(_) => true,
    };
    if metadata.deletion_timestamp.is_none() || !is_ours || !is_of_other {
        return Ok(false);
    }
    let home = ctx.home().await?;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let leaves_objects = record.spec.deletion_policy == DeletionPolicy::Orphan;
    let frees = error.is_some_and(|error| leaves_objects || is_without_kubeconfig(error))
        || local::is_given_up(home, namespace).await?;
    Ok(frees && record::let_go(home, record).await?)
}

/// Returns whether nothing leads to the other cluster any more.
fn is_without_kubeconfig(error: &OperationError) -> bool {
    matches!(
        error.root(),
        OperationError::Remote(RemoteError::NoSecret { .. }) | OperationError::NotLocal { .. }
    )
}
