//! Blockers of pods.

use serde_json::json;

use super::super::blocker::{Blocker, find_pod_blocker, is_pending};
use super::c;

#[test]
fn a_pod_says_what_keeps_it() {
    let pod = |status| json!({"metadata": {"name": "web-1"}, "status": status});
    let state = |state| json!({"containerStatuses": [{"name": "web", "state": state}]});
    let crashed = json!({"initContainerStatuses": [{"name": "init",
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
        "lastState": {"terminated": {"reason": "Error", "exitCode": 2}}}]});
    for (status, reason, message) in [
        (
            state(
                json!({"waiting": {"reason": "ImagePullBackOff", "message": "\"x:9\" not found"}}),
            ),
            "ImagePullBackOff",
            "pod web-1, container web: ImagePullBackOff, \"x:9\" not found",
        ),
        (
            state(
                json!({"waiting": {"reason": "CreateContainerConfigError", "message": "secret \"s\" not found"}}),
            ),
            "CreateContainerConfigError",
            "pod web-1, container web: CreateContainerConfigError, secret \"s\" not found",
        ),
        (
            crashed,
            "CrashLoopBackOff",
            "pod web-1, container init: CrashLoopBackOff, Error, exit code 2",
        ),
        (
            state(json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}})),
            "OOMKilled",
            "pod web-1, container web: OOMKilled, exit code 137",
        ),
        (
            json!({"conditions": [c("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")]}),
            "Unschedulable",
            "pod web-1: Unschedulable, 0/1 nodes are available",
        ),
        (
            json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
            "Evicted",
            "pod web-1: Evicted, low on memory",
        ),
    ] {
        let expected = Blocker {
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        assert_eq!(find_pod_blocker(&pod(status)), Some(expected));
    }
    for status in [
        json!({"initContainerStatuses": [{"name": "init", "state": {"terminated": {"reason": "Completed", "exitCode": 0}}}],
               "containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "PodInitializing"}}}]}),
        json!({"phase": "Running", "containerStatuses": [{"name": "web", "state": {"running": {}}, "ready": false}]}),
        json!(null),
        json!({"containerStatuses": "?"}),
    ] {
        assert_eq!(find_pod_blocker(&pod(status)), None);
    }
    let ready = json!({"phase": "Running", "conditions": [c("Ready", "True", "", "")]});
    assert!(!is_pending(&pod(ready)));
    assert!(!is_pending(&pod(json!({"phase": "Succeeded"}))));
    assert!(is_pending(&pod(json!({"phase": "Running"}))));
}
