//! Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController.

use serde_json::{Value, json};

use super::ReadinessStatus::{Current, Failed, InProgress};
use super::{ReadinessContext, at, c, check, check_in};

#[test]
fn deployments() {
    let kind = "apps/Deployment";
    let status = |ready: i64, updated: i64, all: i64, conditions: Value| {
        json!({
            "spec": {"replicas": 2, "progressDeadlineSeconds": 600},
            "status": {"observedGeneration": 2, "replicas": all, "readyReplicas": ready, "availableReplicas": ready,
                "updatedReplicas": updated, "conditions": conditions},
        })
    };
    let available = c("Available", "True", "MinimumReplicasAvailable", "");
    let done = c("Progressing", "True", "NewReplicaSetAvailable", "");
    let good = json!([available, done]);
    check(kind, status(2, 2, 2, good.clone()), Current, "2/2 ready");
    check(kind, status(1, 2, 2, good.clone()), InProgress, "1/2 ready");
    check(
        kind,
        status(2, 1, 3, good.clone()),
        InProgress,
        "1/2 updated",
    );
    check(
        kind,
        status(3, 2, 3, good),
        InProgress,
        "2/2 updated, 1 old still running",
    );
    let rolling = json!([available, c("Progressing", "True", "ReplicaSetUpdated", "")]);
    check(
        kind,
        status(2, 2, 2, rolling.clone()),
        InProgress,
        "2/2 ready, the rollout is not over",
    );
    let mut no_deadline = status(2, 2, 2, rolling);
    no_deadline["spec"]["progressDeadlineSeconds"] = i32::MAX.into();
    check(kind, no_deadline, Current, "2/2 ready");
    let unavailable = json!([
        c("Available", "False", "MinimumReplicasUnavailable", "no"),
        done
    ]);
    check(
        kind,
        status(2, 2, 2, unavailable),
        InProgress,
        "waiting: MinimumReplicasUnavailable, no",
    );
    check(
        kind,
        status(2, 2, 2, json!([done])),
        InProgress,
        "2/2 ready, not yet available",
    );
    let late = json!([
        available,
        c(
            "Progressing",
            "False",
            "ProgressDeadlineExceeded",
            "too long"
        )
    ]);
    check(
        kind,
        status(1, 2, 2, late),
        Failed,
        "1/2 ready, ProgressDeadlineExceeded, too long",
    );
    let quota = json!([c(
        "ReplicaFailure",
        "True",
        "FailedCreate",
        "exceeded quota"
    )]);
    check(
        kind,
        status(0, 0, 0, quota),
        Failed,
        "FailedCreate, exceeded quota",
    );
    check(
        kind,
        json!({"spec": {"paused": true, "replicas": 2}, "status": {"readyReplicas": 1}}),
        Current,
        "paused, 1/2 ready",
    );
    check(kind, json!({"spec": {}}), InProgress, "0/1 ready");
}

/// Verdicts of kops on these Deployments, with the counts that kops ignores.
#[test]
fn deployments_that_kops_judges() {
    let kind = "apps/Deployment";
    let with = |conditions: &[(&str, &str)]| {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status)| c(kind, status, "R", ""))
            .collect();
        json!({"status": {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "conditions": conditions}})
    };
    check(kind, with(&[("Available", "True")]), Current, "1/1 ready");
    check(
        kind,
        with(&[("Available", "False")]),
        InProgress,
        "waiting: R",
    );
    // kstatus does not look at Progressing where no deadline is set; kops wins: a rollout that stopped is not over.
    check(
        kind,
        with(&[("Available", "True"), ("Progressing", "False")]),
        InProgress,
        "1/1 ready, R",
    );
    // kops: healthy. kstatus wins: unknown availability is waited for.
    check(
        kind,
        with(&[("Available", "Unknown")]),
        InProgress,
        "waiting: R",
    );
    // kops: healthy, kstatus: in progress. Ours (semantics 17): the next pod cannot be created either, and nothing else would show it.
    check(kind, with(&[("ReplicaFailure", "True")]), Failed, "R");
    check(
        kind,
        with(&[("Available", "True"), ("ReplicaFailure", "False")]),
        Current,
        "1/1 ready",
    );
}

#[test]
fn a_failure_to_make_pods_has_to_last() {
    let failure = json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
        "message": "exceeded quota", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"conditions": [failure]}});
    let at = |clock| ReadinessContext {
        now: Some(at(clock)),
        ..ReadinessContext::default()
    };
    for kind in [
        "apps/Deployment",
        "apps/ReplicaSet",
        "ReplicationController",
    ] {
        let fresh = "waiting: FailedCreate, exceeded quota";
        check_in(kind, status.clone(), &at("00:00:09"), InProgress, fresh);
        let lasting = "FailedCreate, exceeded quota";
        check_in(kind, status.clone(), &at("00:00:10"), Failed, lasting);
    }
}

/// What failed before the cause was mended does not fail the next try at once.
#[test]
fn a_failure_of_before_the_wait_gets_time_to_pass() {
    let failure = json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
        "message": "no account", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let late = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "too long", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let waited = |clock: &str, begun: &str| ReadinessContext {
        now: Some(at(clock)),
        begun: Some(at(begun)),
        ..ReadinessContext::default()
    };
    for (condition, waiting, failed) in [
        (
            failure,
            "waiting: FailedCreate, no account",
            "FailedCreate, no account",
        ),
        (
            late,
            "0/1 ready, ProgressDeadlineExceeded, too long",
            "0/1 ready, ProgressDeadlineExceeded, too long",
        ),
    ] {
        let kind = "apps/Deployment";
        let status = json!({"status": {"conditions": [condition]}});
        for (begun, waits, fails) in [
            ("00:00:01", "00:00:10", "00:00:11"),
            ("00:01:00", "00:01:59", "00:02:00"),
        ] {
            check_in(
                kind,
                status.clone(),
                &waited(waits, begun),
                InProgress,
                waiting,
            );
            check_in(kind, status.clone(), &waited(fails, begun), Failed, failed);
        }
    }
    // A deadline that passes while it is waited for has passed.
    let late = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "too long", "lastTransitionTime": "2026-01-01T00:00:01Z"});
    let status = json!({"status": {"conditions": [late]}});
    let failed = "0/1 ready, ProgressDeadlineExceeded, too long";
    check_in(
        "apps/Deployment",
        status,
        &waited("00:00:02", "00:00:00"),
        Failed,
        failed,
    );
}

#[test]
fn stateful_sets() {
    let kind = "apps/StatefulSet";
    let status = |ready: i64, updated: i64, current: &str, strategy: Value| {
        json!({
            "spec": {"replicas": 3, "updateStrategy": strategy},
            "status": {"replicas": 3, "readyReplicas": ready, "updatedReplicas": updated, "currentReplicas": 3,
                "currentRevision": current, "updateRevision": "b"},
        })
    };
    let rolling = json!({"type": "RollingUpdate"});
    check(
        kind,
        status(3, 3, "b", rolling.clone()),
        Current,
        "3/3 ready",
    );
    check(
        kind,
        status(2, 3, "b", rolling.clone()),
        InProgress,
        "2/3 ready",
    );
    check(kind, status(3, 1, "a", rolling), InProgress, "1/3 updated");
    let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    check(
        kind,
        status(3, 1, "a", partition.clone()),
        Current,
        "3/3 ready",
    );
    check(
        kind,
        status(3, 0, "a", partition),
        InProgress,
        "0/1 updated",
    );
    let on_delete = json!({"type": "OnDelete"});
    check(
        kind,
        status(3, 0, "a", on_delete.clone()),
        Current,
        "3/3 ready",
    );
    check(kind, status(1, 0, "a", on_delete), InProgress, "1/3 ready");
    let shrinking = json!({"spec": {"replicas": 1}, "status": {"replicas": 3, "readyReplicas": 3}});
    check(kind, shrinking, InProgress, "1/1 ready, 2 more going away");
}

#[test]
fn daemon_sets_and_replica_sets() {
    let kind = "apps/DaemonSet";
    let status = |ready: i64, updated: i64, strategy: &str| {
        json!({
            "spec": {"updateStrategy": {"type": strategy}},
            "status": {"observedGeneration": 2, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
                "numberReady": ready, "numberAvailable": ready, "updatedNumberScheduled": updated},
        })
    };
    check(kind, status(3, 3, "RollingUpdate"), Current, "3/3 ready");
    check(kind, status(1, 3, "RollingUpdate"), InProgress, "1/3 ready");
    check(
        kind,
        status(3, 1, "RollingUpdate"),
        InProgress,
        "1/3 updated",
    );
    check(kind, status(3, 1, "OnDelete"), Current, "3/3 ready");
    check(kind, status(2, 1, "OnDelete"), InProgress, "2/3 ready");
    check(
        kind,
        json!({"status": {}}),
        InProgress,
        "waiting: not yet seen by its controller",
    );
    check(
        kind,
        json!({"status": {"observedGeneration": 2}}),
        Current,
        "0/0 ready",
    );
    let counts = json!({"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "fullyLabeledReplicas": 1});
    for kind in ["apps/ReplicaSet", "ReplicationController"] {
        check(kind, json!({"status": counts}), Current, "1/1 ready");
        check(
            kind,
            json!({"spec": {"replicas": 2}, "status": counts}),
            InProgress,
            "1/2 ready",
        );
        check(
            kind,
            json!({"spec": {"replicas": 0}, "status": counts}),
            InProgress,
            "0/0 ready, 1 more going away",
        );
        let quota = json!({"status": {"conditions": [c("ReplicaFailure", "True", "FailedCreate", "forbidden")]}});
        check(kind, quota, Failed, "FailedCreate, forbidden");
    }
}
