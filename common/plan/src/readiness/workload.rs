//! Workloads, assessed by their pod counts: Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController.

use serde_json::Value;

use super::fields::{StatusCondition, field, find_condition, is_true, number, text};
use super::{GRACE, Readiness, ReadinessContext};

/// The value of `progressDeadlineSeconds` that means no deadline: Progressing is then never set.
const NO_DEADLINE: i64 = i32::MAX as i64;

pub(super) fn assess_deployment(object: &Value, ctx: &ReadinessContext<'_>) -> Readiness {
    let wanted = wanted_replicas(object);
    let ready = status_count(object, "readyReplicas");
    if is_true(object, &["spec", "paused"]) {
        return Readiness::current(format!("paused, {ready}/{wanted} ready"));
    }
    if let Some(failure) = assess_replica_failure(object, ctx) {
        return failure;
    }
    let progressing = find_condition(object, "Progressing");
    if let Some(progressing) = progressing
        && progressing.reason() == "ProgressDeadlineExceeded"
    {
        let why = format!("{ready}/{wanted} ready, {}", progressing.why());
        return match ctx
            .begun
            .is_some_and(|begun| progressing.since() < Some(begun))
        {
            true if !has_lasted(progressing, ctx) => Readiness::in_progress(why),
            _ => Readiness::failed(why),
        };
    }
    let updated = status_count(object, "updatedReplicas");
    let available = status_count(object, "availableReplicas");
    let old = status_count(object, "replicas") - updated;
    if ready < wanted {
        return Readiness::in_progress(format!("{ready}/{wanted} ready"));
    }
    if updated < wanted {
        return Readiness::in_progress(format!("{updated}/{wanted} updated"));
    }
    if old > 0 {
        return Readiness::in_progress(format!(
            "{updated}/{wanted} updated, {old} old still running"
        ));
    }
    if status_count(object, "replicas") > wanted {
        return Readiness::in_progress(describe_surplus(object, wanted));
    }
    if available < updated {
        return Readiness::in_progress(format!("{available}/{wanted} available"));
    }
    let deadline = number(object, &["spec", "progressDeadlineSeconds"]);
    if deadline.is_some_and(|deadline| deadline != NO_DEADLINE)
        && progressing.is_none_or(|progressing| progressing.reason() != "NewReplicaSetAvailable")
    {
        return Readiness::in_progress(format!("{ready}/{wanted} ready, the rollout is not over"));
    }
    // This also holds without a deadline, when kstatus ignores the condition (T12).
    if let Some(progressing) = progressing
        && progressing.is_false()
    {
        return Readiness::in_progress(format!("{ready}/{wanted} ready, {}", progressing.why()));
    }
    match find_condition(object, "Available") {
        Some(available) if available.is_true() => current_with_counts(ready, wanted),
        Some(available) => Readiness::in_progress(format!("waiting: {}", available.why())),
        None => Readiness::in_progress(format!("{ready}/{wanted} ready, not yet available")),
    }
}

pub(super) fn assess_stateful_set(object: &Value) -> Readiness {
    let wanted = wanted_replicas(object);
    let ready = status_count(object, "readyReplicas");
    if ready < wanted {
        return Readiness::in_progress(format!("{ready}/{wanted} ready"));
    }
    if status_count(object, "replicas") > wanted {
        return Readiness::in_progress(describe_surplus(object, wanted));
    }
    // With OnDelete, the revisions differ until the pods are deleted.
    if text(object, &["spec", "updateStrategy", "type"]) == "OnDelete" {
        return current_with_counts(ready, wanted);
    }
    let partition = number(
        object,
        &["spec", "updateStrategy", "rollingUpdate", "partition"],
    )
    .unwrap_or(0);
    let updated = status_count(object, "updatedReplicas");
    if partition > 0 {
        let wanted_updated = wanted.saturating_sub(partition).max(0);
        return if updated < wanted_updated {
            Readiness::in_progress(format!("{updated}/{wanted_updated} updated"))
        } else {
            current_with_counts(ready, wanted)
        };
    }
    let revision = |name| text(object, &["status", name]);
    if revision("currentRevision") != revision("updateRevision") {
        return Readiness::in_progress(format!("{updated}/{wanted} updated"));
    }
    let current = status_count(object, "currentReplicas");
    if current < wanted {
        return Readiness::in_progress(format!("{current}/{wanted} current"));
    }
    current_with_counts(ready, wanted)
}

pub(super) fn assess_daemon_set(object: &Value) -> Readiness {
    // Without an observed generation, the counts may be from before the controller saw the object.
    if field(object, &["status", "observedGeneration"]).is_none() {
        return Readiness::in_progress("waiting: not yet seen by its controller");
    }
    let wanted = status_count(object, "desiredNumberScheduled");
    let ready = status_count(object, "numberReady");
    if ready < wanted {
        return Readiness::in_progress(format!("{ready}/{wanted} ready"));
    }
    let mut checks = vec![
        ("currentNumberScheduled", "scheduled"),
        ("numberAvailable", "available"),
    ];
    if text(object, &["spec", "updateStrategy", "type"]) != "OnDelete" {
        checks.push(("updatedNumberScheduled", "updated"));
    }
    for (name, word) in checks {
        let number = status_count(object, name);
        if number < wanted {
            return Readiness::in_progress(format!("{number}/{wanted} {word}"));
        }
    }
    current_with_counts(ready, wanted)
}

/// Assesses a ReplicaSet or a ReplicationController, which has the same status.
pub(super) fn assess_replica_set(object: &Value, ctx: &ReadinessContext<'_>) -> Readiness {
    let wanted = wanted_replicas(object);
    let ready = status_count(object, "readyReplicas");
    if let Some(failure) = assess_replica_failure(object, ctx) {
        return failure;
    }
    if ready < wanted {
        return Readiness::in_progress(format!("{ready}/{wanted} ready"));
    }
    let available = status_count(object, "availableReplicas");
    if available < wanted {
        return Readiness::in_progress(format!("{available}/{wanted} available"));
    }
    let labelled = status_count(object, "fullyLabeledReplicas");
    if labelled < wanted {
        return Readiness::in_progress(format!("{labelled}/{wanted} labelled"));
    }
    if status_count(object, "replicas") > wanted {
        return Readiness::in_progress(describe_surplus(object, wanted));
    }
    current_with_counts(ready, wanted)
}

/// Assesses a failure to create pods: a quota, pod security, a missing service account (semantics 17.5: it will not pass by itself).
/// kstatus waits for ever and kops calls it healthy (T12); here it is a failure once it has lasted, because in a new namespace the service
/// account and the quota's count may still be missing.
fn assess_replica_failure(object: &Value, ctx: &ReadinessContext<'_>) -> Option<Readiness> {
    let failure = find_condition(object, "ReplicaFailure").filter(|failure| failure.is_true())?;
    Some(match has_lasted(failure, ctx) {
        true => Readiness::failed(failure.why()),
        false => Readiness::in_progress(format!("waiting: {}", failure.why())),
    })
}

/// Whether a failure condition has lasted long enough to count. The cause of one from before the wait may have been resolved since:
/// controllers retry after pauses that double, so the next retry comes before the failure is twice as old.
fn has_lasted(failure: StatusCondition<'_>, ctx: &ReadinessContext<'_>) -> bool {
    let (Some(now), Some(since)) = (ctx.now, failure.since()) else {
        return true;
    };
    let (from, patience) = match ctx.begun {
        Some(begun) if begun > since => (begun, begun.duration_since(since).max(GRACE)),
        _ => (since, GRACE),
    };
    now.duration_since(from) >= patience
}

fn current_with_counts(ready: i64, wanted: i64) -> Readiness {
    Readiness::current(format!("{ready}/{wanted} ready"))
}

fn describe_surplus(object: &Value, wanted: i64) -> String {
    let surplus = status_count(object, "replicas").saturating_sub(wanted);
    format!("{wanted}/{wanted} ready, {surplus} more going away")
}

/// Returns `spec.replicas`; the server's default is 1.
fn wanted_replicas(object: &Value) -> i64 {
    number(object, &["spec", "replicas"]).unwrap_or(1).max(0)
}

/// Returns a count of the status, which omits zeros; never negative.
fn status_count(object: &Value, name: &str) -> i64 {
    number(object, &["status", name]).unwrap_or(0).max(0)
}
