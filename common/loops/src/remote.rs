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
use common::target::NamespaceCluster;
use futures::{StreamExt as _, stream};

use crate::cause::ReconcileCause;
use crate::installation::{
    ReconcileOptions, ReconcileOutcome, ReconcileReport, ReconciledInstallation, reconcile,
    skipped_outcome, write_outcome,
};
use crate::slots::{Lane, Slots};

/// One of several installations that are reconciled together.
pub(crate) struct GroupedInstallation {
    pub(crate) name: InstallationName,
    /// Why it is reconciled.
    pub(crate) cause: ReconcileCause,
    /// The lane in which it waits.
    pub(crate) lane: Lane,
    /// Its interruption.
    pub(crate) part: Interruption,
}

impl GroupedInstallation {
    /// Returns how it is reconciled: as the others, with its own cause.
    fn options(&self, how: &ReconcileOptions) -> ReconcileOptions {
        ReconcileOptions {
            cause: self.cause.clone(),
            ..how.clone()
        }
    }
}

/// Reconciles installations of one namespace, and tells `see` when each of them waits and when it is done. `ctx`: the context of that
/// namespace; `slots`: the slots of its cluster, which other calls share.
pub(crate) async fn reconcile_together(
    ctx: &Context,
    all: &[GroupedInstallation],
    how: &ReconcileOptions,
    interruption: &Interruption,
    slots: &Slots,
    see: &dyn Fn(ReconcileReport),
) {
    let begun = Instant::now();
    let done = |one: &GroupedInstallation, found: FoundInstallation| {
        let cause = match &found.record {
            Some(record) => one.cause.with_record(record),
            None => one.cause.clone(),
        };
        see(ReconcileReport::Done(Box::new(ReconciledInstallation {
            name: one.name.clone(),
            cause,
            record: found.record,
            is_elsewhere: found.is_elsewhere,
            outcome: found.outcome,
            took: begun.elapsed(),
        })));
    };
    let resolver = match interruption
        .unless_interrupted(Resolver::for_records(ctx))
        .await
    {
        Ok(resolver) => resolver,
        Err(error) => {
            return report_lost(ctx, all, error, how, interruption, &done).await;
        }
    };
    let work = async |one: &GroupedInstallation| {
        let (name, part) = (&one.name, &one.part);
        let how = one.options(how);
        let working = async {
            let record = resolver.records.get(name)?;
            let freeing = remove_finalizer(ctx, record, None);
            Some(match part.unless_interrupted(freeing).await {
                Ok(false) => {
                    let done = reconcile(ctx, &resolver, record, &how, part).await;
                    FoundInstallation::new(done.record, done.outcome)
                }
                Ok(true) => FoundInstallation::new(None, ReconcileOutcome::LetGo),
                Err(error) => {
                    FoundInstallation::new(Some(record.clone()), ReconcileOutcome::Failed(error))
                }
            })
        };
        let waits = || see(ReconcileReport::Waits(name.clone()));
        let found = slots.work(one.lane, part, waits, working).await;
        done(one, found.unwrap_or_else(FoundInstallation::deleted));
    };
    stream::iter(all).for_each_concurrent(None, work).await;
}

/// The result for one installation.
struct FoundInstallation {
    record: Option<AddonInstallation>,
    is_elsewhere: bool,
    outcome: Result<ReconcileOutcome, OperationError>,
}

impl FoundInstallation {
    fn new(record: Option<AddonInstallation>, outcome: ReconcileOutcome) -> Self {
        Self {
            record,
            is_elsewhere: false,
            outcome: Ok(outcome),
        }
    }

    fn deleted() -> Self {
        Self::new(None, ReconcileOutcome::UpToDate)
    }

    /// The result if the namespace does not stand for a cluster.
    fn without_cluster() -> Self {
        Self {
            is_elsewhere: true,
            ..Self::deleted()
        }
    }
}

/// Reports for each installation why its cluster cannot be worked on. This may stop at any point, because the next look reports it again.
async fn report_lost(
    ctx: &Context,
    all: &[GroupedInstallation],
    error: OperationError,
    how: &ReconcileOptions,
    interruption: &Interruption,
    done: &dyn Fn(&GroupedInstallation, FoundInstallation),
) {
    let is_of_namespace = match error.root() {
        OperationError::NotLocal { .. } | OperationError::Remote(_) => true,
        OperationError::Interrupted(_) => false,
        // The namespace may stand for another cluster, even if that is not reached.
        _ => {
            let standing = interruption.unless_interrupted(ctx.standing()).await;
            matches!(standing, Ok(NamespaceCluster::OtherCluster(_)))
        }
    };
    let error = Arc::new(error);
    let again = |outcome| FoundInstallation::new(None, outcome);
    let read = async {
        let home = ctx.home().await?;
        let namespace = ctx.settings().namespace.as_deref();
        Ok::<_, OperationError>(record::list(home, namespace).await?)
    };
    // A failure in this cluster, or before it is known where the namespace leads, says nothing about the records.
    let records = match is_of_namespace {
        true => interruption.unless_interrupted(read).await.ok(),
        false => None,
    };
    let Some(records) = records else {
        for one in all {
            done(one, again(ReconcileOutcome::Lost(Arc::clone(&error))));
        }
        return;
    };
    let is_nowhere = matches!(error.root(), OperationError::NotLocal { .. });
    for one in all {
        let Some(record) = records.iter().find(|record| name_of(record) == one.name) else {
            done(one, FoundInstallation::deleted());
            continue;
        };
        let find = async {
            let found = match remove_finalizer(ctx, record, Some(&error)).await? {
                true => again(ReconcileOutcome::LetGo),
                false if is_nowhere && !pin::is_in_other_cluster(record) => {
                    FoundInstallation::without_cluster()
                }
                false => {
                    let lost = || ReconcileOutcome::Lost(Arc::clone(&error));
                    let outcome = skipped_outcome(record).unwrap_or_else(lost);
                    let how = one.options(how);
                    let written = write_outcome(ctx, record, &outcome, &how).await?;
                    FoundInstallation::new(written.or_else(|| Some(record.clone())), outcome)
                }
            };
            Ok::<_, OperationError>(found)
        };
        let failed =
            |error| FoundInstallation::new(Some(record.clone()), ReconcileOutcome::Failed(error));
        let found = interruption
            .unless_interrupted(find)
            .await
            .unwrap_or_else(failed);
        done(one, found);
    }
}

/// Removes our finalizer from a record whose deletion must not wait for another cluster: the kubeconfig no longer exists, the objects are
/// to be left anyway, or the namespace is deleted with everything that is recorded in it. The cluster is left unchanged (semantics 14.6,
/// 15). Returns whether the finalizer was removed.
async fn remove_finalizer(
    ctx: &Context,
    record: &AddonInstallation,
    error: Option<&OperationError>,
) -> Result<bool, OperationError> {
    let metadata = &record.metadata;
    let mut finalizers = metadata.finalizers.iter().flatten();
    let is_ours = finalizers.any(|finalizer| finalizer == FINALIZER_UNINSTALL);
    let is_of_other = match error.map(OperationError::root) {
        None => ctx.is_remote().await?,
        Some(OperationError::NotLocal { .. }) => pin::is_in_other_cluster(record),
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
    Ok(frees && record::remove_finalizer(home, record).await?)
}

/// Returns whether nothing leads to the other cluster any more.
fn is_without_kubeconfig(error: &OperationError) -> bool {
    matches!(
        error.root(),
        OperationError::Remote(RemoteError::NoSecret { .. }) | OperationError::NotLocal { .. }
    )
}
