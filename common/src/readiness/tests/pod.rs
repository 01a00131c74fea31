//! Pod and Job.

use serde_json::json;

use super::Status::{Current, Failed, InProgress};
use super::{c, check};

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
    check("batch/CronJob", json!({"status": {}}), Current, "ready");
}
