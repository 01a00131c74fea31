//! Pod and Job.

use serde_json::{Value, json};

use super::ReadinessStatus::{Current, Failed, InProgress, Terminating};
use super::{assess_ended_by_events, assess_missing, c, check, object};

#[test]
fn pods() {
    let waiting = |kind: &str, reason: &str, message: &str| {
        json!({"status": {"phase": "Pending", kind: [
            {"name": "web", "state": {"waiting": {"reason": reason, "message": message}},
                "lastState": {"terminated": {"exitCode": 2}}}]}})
    };
    check(
        "Pod",
        json!({"status": {"phase": "Succeeded"}}),
        Current,
        "completed",
    );
    check(
        "Pod",
        json!({"status": {"phase": "Running", "conditions": [c("Ready", "True", "", "")]}}),
        Current,
        "ready",
    );
    let evicted =
        json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}});
    check("Pod", evicted, Failed, "failed: Evicted, low on memory");
    let ended = json!({"status": {"phase": "Failed", "containerStatuses": [
        {"name": "a", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
        {"name": "b", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}});
    check(
        "Pod",
        ended,
        Failed,
        "failed: container b: OOMKilled, exit code 137",
    );
    for kind in ["initContainerStatuses", "containerStatuses"] {
        check(
            "Pod",
            waiting(kind, "CrashLoopBackOff", "back-off 40s"),
            Failed,
            "CrashLoopBackOff of container web, exit code 2",
        );
        check(
            "Pod",
            waiting(kind, "ImagePullBackOff", "\"x:y\" not found"),
            InProgress,
            "waiting: ImagePullBackOff, \"x:y\" not found",
        );
        check(
            "Pod",
            waiting(kind, "ErrImagePull", ""),
            InProgress,
            "waiting: ErrImagePull",
        );
        check(
            "Pod",
            waiting(kind, "InvalidImageName", "x y"),
            Failed,
            "InvalidImageName, x y",
        );
    }
    check(
        "Pod",
        waiting("containerStatuses", "ContainerCreating", ""),
        InProgress,
        "0/1 containers ready",
    );
    let unschedulable = json!({"status": {"phase": "Pending", "conditions": [
        c("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")]}});
    check(
        "Pod",
        unschedulable,
        InProgress,
        "waiting: Unschedulable, 0/1 nodes are available",
    );
    let half = json!({"spec": {"containers": [{}, {}]}, "status": {"phase": "Running", "containerStatuses": [{"ready": true}, {"ready": false}]}});
    check("Pod", half, InProgress, "1/2 containers ready");
}

#[test]
fn jobs() {
    let kind = "batch/Job";
    check(
        kind,
        json!({"status": {"conditions": [c("Complete", "True", "", "")]}}),
        Current,
        "completed",
    );
    let failed = json!({"status": {"conditions": [c("Failed", "True", "BackoffLimitExceeded", "too often")]}});
    check(
        kind,
        failed,
        Failed,
        "failed: BackoffLimitExceeded, too often",
    );
    check(
        kind,
        json!({"spec": {"suspend": true}, "status": {}}),
        Current,
        "suspended",
    );
    check(
        kind,
        json!({"status": {"active": 1}}),
        InProgress,
        "0/1 completed",
    );
    check(
        kind,
        json!({"spec": {"completions": 3}, "status": {"succeeded": 1, "failed": 2}}),
        InProgress,
        "1/3 completed, 2 failed",
    );
}

/// A Job that its time to live deletes has done its work (Flux).
#[test]
fn jobs_that_go_by_themselves() {
    let ended = |kind: &str| json!({"conditions": [c(kind, "True", "R", "")]});
    let job = |ttl: Value, status: Value| {
        object(
            "batch/Job",
            json!({"spec": {"ttlSecondsAfterFinished": ttl}, "status": status}),
        )
    };
    let not_there = "it does not exist";
    let by_itself = "gone after its ttlSecondsAfterFinished";
    for (last, is_final, status, message) in [
        (job(json!(0), ended("Complete")), true, Current, "completed"),
        (
            job(json!(0), ended("Complete")),
            false,
            Current,
            "completed",
        ),
        (job(json!(0), ended("Failed")), true, Failed, "failed: R"),
        // Another client deleted it before its end.
        (
            job(json!(0), json!({"active": 1})),
            true,
            InProgress,
            not_there,
        ),
        (
            job(json!(0), json!({"active": 1})),
            false,
            Current,
            by_itself,
        ),
        (
            job(Value::Null, ended("Complete")),
            true,
            InProgress,
            not_there,
        ),
        (object("Pod", json!({})), true, InProgress, not_there),
    ] {
        let verdict = assess_missing(Some(&last), is_final);
        assert_eq!(
            (verdict.status, verdict.message.as_str()),
            (status, message),
            "{last}"
        );
    }
    assert_eq!(assess_missing(None, false).status, InProgress);
    let deleted = "2026-01-01T00:00:00Z";
    let going = json!({"metadata": {"deletionTimestamp": deleted}, "spec": {"ttlSecondsAfterFinished": 0}, "status": ended("Complete")});
    check("batch/Job", going, Current, "completed");
    let deleted = json!({"metadata": {"deletionTimestamp": deleted}, "status": ended("Complete")});
    check("batch/Job", deleted, Terminating, "being deleted");
}

#[test]
fn jobs_that_were_never_observed() {
    let event = |component: &str, reason: &str, time: &str| json!({"reason": reason, "message": "m", "source": {"component": component}, "lastTimestamp": time});
    let of = |events: &[Value]| {
        assess_ended_by_events(events).map(|verdict| (verdict.status, verdict.message))
    };
    let started = event("job-controller", "SuccessfulCreate", "2026-01-01T00:00:00Z");
    let completed = event("job-controller", "Completed", "2026-01-01T00:00:01Z");
    let failed = event(
        "job-controller",
        "BackoffLimitExceeded",
        "2026-01-01T00:00:02Z",
    );
    let other = event("somebody", "Completed", "2026-01-01T00:00:03Z");
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[started.clone(), other.clone()]), None);
    let done = Some((Current, "completed".to_owned()));
    assert_eq!(of(&[started.clone(), completed.clone()]), done);
    let failure = Some((Failed, "failed: BackoffLimitExceeded, m".to_owned()));
    assert_eq!(of(&[failed, completed.clone(), other]), failure);
    // Started again since.
    let again = event("job-controller", "SuccessfulCreate", "2026-01-01T00:01:00Z");
    assert_eq!(of(&[completed, again]), None);
}
