//! Does what a plan says: record, apply waves, wait, prune, record.

mod work;

use std::time::Duration;

use futures::future::{Either, select};
use serde::Serialize;
use tokio::time::Instant;

use crate::api::installation::{AddonInstallation, CreatedNamespace, Phase};
use crate::manifest::key::ObjectKey;
use crate::plan::{Action, Plan, Verb};
use crate::readiness::Readiness;

use super::begin::{Begun, begin};
use super::cluster::Cluster;
use super::error::EngineError;
use super::lock::{self, Lock};
use super::namespace::{self, Removal};
use super::report::{Report, Settled};
use super::status::{self, Ending};
use super::{record, wait};
use work::{Work, Worked};

/// How often the deletion of the record is tried while others write into it.
const DELETE_TRIES: usize = 5;

/// How an operation runs.
#[derive(Clone, Debug)]
pub struct ExecuteOptions {
    /// Who holds the lock, as others will read it: `user@host (kubectl-addons, pid 4711)`.
    pub holder: String,
    /// Whether readiness is waited for (CRDs that other objects need always are).
    pub wait: bool,
    /// Bound of the whole operation.
    pub timeout: Duration,
    /// Whether to wait for another holder (until `timeout`), or to fail with [`EngineError::Locked`] at once.
    pub wait_for_lock: bool,
    /// Take the lock over from a live holder.
    pub steal_lock: bool,
}

/// What happens, as it happens. Sent in order; a receiver only prints.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "event")]
pub enum Event {
    /// Somebody else holds the lock; we wait.
    WaitingForLock {
        /// Who.
        holder: String,
    },
    /// A wave begins.
    Wave {
        /// Its title.
        title: &'static str,
        /// How many steps it has.
        steps: usize,
    },
    /// A write succeeded.
    Applied {
        /// The object.
        key: ObjectKey,
        /// What was done.
        action: Action,
    },
    /// The readiness of an object that is waited for changed.
    Waiting {
        /// The object.
        key: ObjectKey,
        /// How it is.
        readiness: Readiness,
    },
    /// An object was deleted.
    Pruned {
        /// The object.
        key: ObjectKey,
    },
    /// Something that succeeded, or was left, with a warning.
    Warning {
        /// The object.
        key: ObjectKey,
        /// The server's words, or why a namespace stays.
        message: String,
    },
    /// A field that another manager held was taken or left.
    Settled(Settled),
    /// One object failed.
    Failed {
        /// The object.
        key: ObjectKey,
        /// The server's words, or the reason of its readiness.
        message: String,
    },
}

/// Runs `plan` for the installation `wanted`.
///
/// `wanted` is the record with the spec that the user wants (and, where there is one, the stored resourceVersion and status
/// that the plan was made with): without resourceVersion it is created, with another spec, labels, annotations or finalizers
/// than the stored one it is replaced (both before the first write to other objects; the API server's admission may refuse
/// here: [`EngineError::Denied`]). Then lock and union inventory in one status write, waves, waits, prune, exact status.
/// For an uninstallation the record is deleted last (its admission is asked first).
///
/// An operation that finds nothing to do (an empty plan, the same target, an unchanged spec) reads the record once and
/// writes nothing. One that had to wait for another holder who did the same reports that one's result.
///
/// Dropping the future leaves a record from which the next run continues, at the latest 15 s later.
///
/// # Errors
/// Errors before or in the record ([`EngineError::Stale`] where it moved under the plan, [`EngineError::Locked`]).
/// What happens to single objects is told in the [`Report`].
pub async fn execute(
    cluster: &Cluster,
    wanted: &AddonInstallation,
    plan: &Plan,
    options: &ExecuteOptions,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Result<Report, EngineError> {
    let begun = Instant::now();
    // A time-out of centuries is no time-out; the sum must not overflow.
    let deadline = begun + options.timeout.min(Duration::from_secs(365 * 24 * 3600));
    status::check_size(plan)?;
    let mut report = Report {
        retained: plan.retained.clone(),
        unchanged: plan.unchanged.len(),
        ..Report::default()
    };
    match begin(cluster, wanted, plan, options, deadline, events).await {
        Ok(Begun::Locked(lock)) => {
            run(cluster, *lock, plan, options, deadline, events, &mut report).await?;
        }
        Ok(Begun::Nothing(stored)) => {
            report.unchanged += plan.steps().count();
            // Installed before without waiting: this run waits, but there is nothing to write.
            if options.wait && phase(&stored) != Some(Phase::Ready) {
                let pending = wait::wait(cluster, &plan.wait_for, deadline, events).await;
                report.take_pending(pending);
            }
            report.record = Some(*stored);
        }
        // Somebody else did what we wanted.
        Err(EngineError::Stale {
            what: lock::UNINSTALLED,
            ..
        }) if plan.verb == Verb::Uninstall => {}
        Err(error) => return Err(error),
    }
    report.elapsed = begun.elapsed();
    Ok(report)
}

/// The operation under its lock, which is renewed meanwhile; work stops where the lock is lost.
async fn run(
    cluster: &Cluster,
    mut lock: Lock,
    plan: &Plan,
    options: &ExecuteOptions,
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
    report: &mut Report,
) -> Result<(), EngineError> {
    let work = Work {
        cluster,
        plan,
        options,
        deadline,
        events,
    };
    let worked = {
        let working = std::pin::pin!(work.run(report));
        let keeping = std::pin::pin!(lock.keep(cluster));
        match select(working, keeping).await {
            Either::Left((worked, _)) => worked,
            Either::Right((lost, _)) => return Err(lost),
        }
    };
    if plan.verb == Verb::Uninstall && report.is_done() {
        remove_namespace(cluster, &mut lock, plan, events, report).await?;
        return delete_record(cluster, lock).await;
    }
    finish(cluster, &mut lock, plan, options, &worked, report).await?;
    report.record = Some(lock.record);
    Ok(())
}

/// Writes the last status of the operation.
async fn finish(
    cluster: &Cluster,
    lock: &mut Lock,
    plan: &Plan,
    options: &ExecuteOptions,
    worked: &Worked,
    report: &Report,
) -> Result<(), EngineError> {
    let ending = ending(report, options);
    let generation = lock.record.metadata.generation;
    let now = cluster.now();
    lock.write(cluster, |status| {
        if let Some(name) = &plan.create_namespace {
            status.created_namespace = worked.namespace_uid.as_ref().map(|uid| CreatedNamespace {
                name: name.clone(),
                uid: uid.clone(),
            });
        }
        status::end(
            status,
            plan,
            &worked.recorded,
            &ending,
            generation,
            &options.holder,
            now,
        );
    })
    .await
}

/// How the operation ended, in the record's words.
fn ending(report: &Report, options: &ExecuteOptions) -> Ending {
    let failed = |reason, key: &ObjectKey, message: &str| Ending::Failed {
        reason,
        message: format!("{key}: {message}"),
    };
    match (
        report.failed.first(),
        report.not_ready.first(),
        report.skipped.first(),
    ) {
        (Some(failure), _, _) => failed("Failed", &failure.key, &failure.message),
        (_, Some((key, readiness)), _) => failed("TimedOut", key, &readiness.message),
        (_, _, Some((key, why))) => failed("TimedOut", key, why),
        (None, None, None) => Ending::Done {
            waited: options.wait,
        },
    }
}

/// Removes the namespace that we created, or says why it stays.
async fn remove_namespace(
    cluster: &Cluster,
    lock: &mut Lock,
    plan: &Plan,
    events: &(dyn Fn(Event) + Send + Sync),
    report: &mut Report,
) -> Result<(), EngineError> {
    let created = lock.record.status.as_ref();
    let Some(created) = created.and_then(|status| status.created_namespace.clone()) else {
        return Ok(());
    };
    let record = lock.record.clone();
    let key = namespace::key(&created.name);
    let deletions = plan.prune.iter().flatten();
    let deleted = deletions.map(|deletion| deletion.uid.clone()).collect();
    let removal = {
        let removing = std::pin::pin!(namespace::remove(cluster, &created, &record, deleted));
        let keeping = std::pin::pin!(lock.keep(cluster));
        match select(removing, keeping).await {
            Either::Left((removal, _)) => removal,
            Either::Right((lost, _)) => return Err(lost),
        }
    };
    // An empty namespace left behind is no reason to keep the record; who may not look may not delete either.
    let why = match removal {
        Ok(Removal::Removed) => {
            report.pruned.push(key);
            return Ok(());
        }
        Ok(Removal::Kept(why)) => why,
        Err(error @ (EngineError::Forbidden { .. } | EngineError::Denied { .. })) => {
            error.to_string()
        }
        Err(error) => return Err(error),
    };
    events(Event::Warning {
        key: key.clone(),
        message: format!("the namespace stays: {why}"),
    });
    report.retained.push(key);
    Ok(())
}

/// Deletes the record, whatever others wrote into it meanwhile.
async fn delete_record(cluster: &Cluster, lock: Lock) -> Result<(), EngineError> {
    let mut stored = lock.record;
    for _ in 0..DELETE_TRIES {
        match record::delete(cluster, &stored, false).await {
            Err(error) if error.is_conflict() => {}
            result => return result,
        }
        match lock::reread(cluster, &stored).await {
            Ok(found) => stored = found,
            Err(EngineError::Stale { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    record::delete(cluster, &stored, false).await
}

fn phase(record: &AddonInstallation) -> Option<Phase> {
    record.status.as_ref()?.phase
}
