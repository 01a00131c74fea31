//! Begins an operation: writes the record's spec, then lock, journal and union inventory in one write.
//!
//! A plan is made for one state of the record. If the record changes between the plan and the lock, the server answers 409 and the record
//! is read again: the change may not concern the plan, another client may have done the same, or the plan is stale.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use tokio::time::Instant;

use addons_admission::validate;
use addons_plan::InstallationPlan;
use common::api::installation::{AddonInstallation, InstallationPhase};
use common::api::names::{ANNOTATION_WRITTEN_BY, FINALIZER_UNINSTALL};

use super::cluster::Cluster;
use super::error::{EngineError, StaleReason};
use super::event::Event;
use super::lock::{self, Lock};
use super::task::{ExecuteOptions, Task};
use super::{namespace, record, status};

/// The result of beginning an operation.
#[derive(Debug)]
pub(super) enum BeginResult {
    /// The lock is held.
    Locked(Box<Lock>),
    /// Everything is as wanted, because of us or of another client that we waited for: nothing was written.
    Nothing(Box<AddonInstallation>),
}

/// The record as this operation wrote it before it had the lock.
#[derive(Debug, Default)]
struct OwnWrite {
    record: Option<AddonInstallation>,
    is_new: bool,
}

/// Begins the operation of a task. If that fails, the record is restored, unless others wrote it meanwhile.
pub(super) async fn begin(
    cluster: &Cluster,
    task: &Task<'_>,
    options: &ExecuteOptions,
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Result<BeginResult, EngineError> {
    status::check_size(task.plan)?;
    let mut written = OwnWrite::default();
    let begun = lock_with_spec(cluster, task, options, deadline, events, &mut written).await;
    if let (Err(_), Some(record)) = (&begun, written.record) {
        // Both carry the resourceVersion of our own write, so changes that others made since are not undone. Their result does not change
        // the error.
        if written.is_new {
            let _ = record::delete(cluster, &record, false).await;
        } else if let Some(fallback) = task.fallback {
            let _ = record::replace(cluster, &with_spec(fallback, &record)).await;
        }
    }
    begun
}

async fn lock_with_spec(
    cluster: &Cluster,
    task: &Task<'_>,
    options: &ExecuteOptions,
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
    ours: &mut OwnWrite,
) -> Result<BeginResult, EngineError> {
    let (wanted, plan) = (task.wanted, task.plan);
    // The record that the plan was made with: first as the plugin read it, later as our own write of the spec left it.
    let mut known = wanted.clone();
    let mut stored = read_or_create(cluster, task, ours).await?;
    if let Some(made) = &ours.record {
        known = made.clone();
    }
    let mut spec_written = wanted.resource_version().is_none();
    loop {
        stored = lock::wait_until_free(cluster, stored, options, deadline, events).await?;
        if is_done(&stored, wanted, plan) {
            return Ok(BeginResult::Nothing(Box::new(stored)));
        }
        if let Some(what) = stale_reason(&known, &stored) {
            return Err(lock::stale_error(wanted, what));
        }
        if plan.verb.ends_installation() {
            // Admission may refuse the deletion of the record, which comes last: a dry run asks before the first write.
            record::delete(cluster, &stored, true).await?;
        }
        if !spec_written && needs_write(wanted, &stored) {
            match record::replace(cluster, &with_spec(wanted, &stored)).await {
                Ok(written) => {
                    spec_written = true;
                    known = written.clone();
                    ours.record = Some(written.clone());
                    stored = written;
                }
                Err(error) if error.is_conflict() && Instant::now() < deadline => {
                    stored = lock::reread(cluster, &stored).await?;
                    if !needs_write(wanted, &stored) {
                        // Our own write succeeded and only its response was lost, or another client wants the same.
                        spec_written = true;
                        known.metadata.generation = stored.metadata.generation;
                    }
                    continue;
                }
                Err(error) => return Err(error),
            }
        }
        let now = cluster.home().now();
        let mut begun = status::begin_status(stored.status.as_ref(), plan, &options.choices, now);
        // A namespace that is still missing is created; one that is being deleted is handled at the end.
        if plan.create_namespace.is_none() && !plan.verb.ends_installation() {
            namespace::complete_created_namespace(cluster, &plan.installation, &mut begun).await?;
        }
        // The clock is read again, because the last request may have been slow.
        let operation = lock::new_operation(
            plan.verb,
            &options.holder,
            plan.to.clone(),
            cluster.home().now(),
        );
        match Lock::acquire(cluster, stored.clone(), begun, operation).await {
            Ok(lock) => return Ok(BeginResult::Locked(Box::new(lock))),
            Err(error) if error.is_conflict() && Instant::now() < deadline => {
                stored = lock::reread(cluster, &stored).await?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns the stored record, or creates it.
async fn read_or_create(
    cluster: &Cluster,
    task: &Task<'_>,
    ours: &mut OwnWrite,
) -> Result<AddonInstallation, EngineError> {
    let wanted = task.wanted;
    if wanted.resource_version().is_some() {
        return lock::reread(cluster, wanted).await;
    }
    if task.plan.verb.ends_installation() {
        return Err(lock::stale_error(wanted, StaleReason::Uninstalled));
    }
    let (made, found) = create(cluster, wanted).await?;
    if made {
        *ours = OwnWrite {
            record: Some(found.clone()),
            is_new: true,
        };
    }
    Ok(found)
}

/// Creates the record. If one exists (another client was faster, or the response to our own creation was lost), it is returned with
/// `false`.
async fn create(
    cluster: &Cluster,
    wanted: &AddonInstallation,
) -> Result<(bool, AddonInstallation), EngineError> {
    match record::create(cluster, wanted).await? {
        Some(created) => Ok((true, created)),
        None => Ok((false, lock::reread(cluster, wanted).await?)),
    }
}

/// Returns whether the record says that the target of the plan is already installed.
fn is_done(
    stored: &AddonInstallation,
    wanted: &AddonInstallation,
    plan: &InstallationPlan,
) -> bool {
    let Some(status) = &stored.status else {
        return false;
    };
    let (Some(to), Some(installed)) = (&plan.to, &status.installed) else {
        return false;
    };
    let ended_well = matches!(
        status.phase,
        Some(InstallationPhase::Ready | InstallationPhase::Installed)
    );
    // Either the plan has no steps, or another client did them after the plan was made.
    let by_others = stale_reason(wanted, stored).is_some();
    to.is_same_target(installed)
        && ended_well
        && status.operation.is_none()
        && !needs_write(wanted, stored)
        // A spec that others changed has to be recorded as installed, even if no object differs.
        && stored.is_observed().unwrap_or(true)
        && (plan.is_empty() || by_others)
}

/// Returns why a plan that was made with `known` no longer holds.
fn stale_reason(known: &AddonInstallation, stored: &AddonInstallation) -> Option<StaleReason> {
    let facts = |record: &AddonInstallation| {
        let status = record.status.clone().unwrap_or_default();
        (status.inventory, status.installed)
    };
    if facts(known) != facts(stored) {
        return Some(StaleReason::Installed);
    }
    match known.metadata.generation {
        Some(generation) if stored.metadata.generation != Some(generation) => {
            Some(StaleReason::SpecChanged)
        }
        // The record exists although it was to be created: it is ours only if its spec is the same.
        None if known.spec != stored.spec => Some(StaleReason::Created),
        _ => None,
    }
}

/// Returns whether the record has to be written before the operation. A different `written-by` annotation alone does not count.
pub(super) fn needs_write(wanted: &AddonInstallation, stored: &AddonInstallation) -> bool {
    wanted.spec != stored.spec
        || wanted.labels() != stored.labels()
        || annotations(wanted) != annotations(stored)
        || finalizers(wanted) != finalizers(stored)
}

/// Returns all annotations except the one that says who wrote the record.
fn annotations(record: &AddonInstallation) -> BTreeMap<&String, &String> {
    let all = record.annotations().iter();
    all.filter(|(name, _)| *name != ANNOTATION_WRITTEN_BY)
        .collect()
}

/// Returns all finalizers except ours, which a reconciler sets and removes independently of plans (semantics 15).
fn finalizers(record: &AddonInstallation) -> Vec<String> {
    let all = record.finalizers().iter();
    all.filter(|one| *one != FINALIZER_UNINSTALL)
        .cloned()
        .collect()
}

/// Returns the stored record with the wanted spec, labels, annotations and finalizers. The recorded writer stays if policies do not judge
/// the change (semantics 19.3).
pub(super) fn with_spec(
    wanted: &AddonInstallation,
    stored: &AddonInstallation,
) -> AddonInstallation {
    let mut next = stored.clone();
    next.spec = wanted.spec.clone();
    next.metadata.labels.clone_from(&wanted.metadata.labels);
    next.metadata
        .annotations
        .clone_from(&wanted.metadata.annotations);
    if !validate::is_policy_relevant(&wanted.spec, Some(&stored.spec))
        && let Some(writer) = stored.annotations().get(ANNOTATION_WRITTEN_BY)
    {
        let annotations = next.annotations_mut();
        annotations.insert(ANNOTATION_WRITTEN_BY.to_owned(), writer.clone());
    }
    let mut all = finalizers(wanted);
    let ours = stored.finalizers().iter();
    all.extend(ours.filter(|one| *one == FINALIZER_UNINSTALL).cloned());
    next.metadata.finalizers = (!all.is_empty()).then_some(all);
    next
}

#[cfg(test)]
#[path = "begin/tests.rs"]
mod tests;
