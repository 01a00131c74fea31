//! Reasons why a pod does not get ready, for the objects that wait for it.

use serde::Serialize;
use serde_json::Value;

use super::fields::{field, find_condition, join_reason, text};
use super::pod::container_statuses;

/// The reason why an object does not get ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocker {
    /// The reason in one word: `ImagePullBackOff`, `Unschedulable`, `FailedMount`.
    pub reason: String,
    /// The whole sentence: `pod web-1: ImagePullBackOff, "x:1" not found`.
    pub message: String,
}

impl Blocker {
    /// Formats the message as `SUBJECT: REASON, MESSAGE`, cleaned and shortened like every message of a server.
    #[must_use]
    pub fn new(subject: &str, reason: &str, message: &str) -> Self {
        Self {
            reason: join_reason(reason, ""),
            message: format!(
                "{}: {}",
                join_reason("", subject),
                join_reason(reason, message)
            ),
        }
    }
}

/// Finds the blocker in the pod's own status. A pod that runs without being ready has none there, but maybe in its events.
#[must_use]
pub fn find_pod_blocker(pod: &Value) -> Option<Blocker> {
    let name = text(pod, &["metadata", "name"]);
    if let Some(blocker) =
        container_statuses(pod).find_map(|status| find_container_blocker(name, status))
    {
        return Some(blocker);
    }
    if text(pod, &["status", "phase"]) == "Failed" {
        let status = |field| text(pod, &["status", field]);
        let reason = status("reason");
        let reason = if reason.is_empty() { "Failed" } else { reason };
        return Some(Blocker::new(
            &format!("pod {name}"),
            reason,
            status("message"),
        ));
    }
    let unscheduled =
        find_condition(pod, "PodScheduled").filter(|scheduled| scheduled.is_false())?;
    Some(Blocker::new(
        &format!("pod {name}"),
        unscheduled.reason(),
        unscheduled.message(),
    ))
}

/// Whether a pod is neither ready nor finished.
#[must_use]
pub fn is_pending(pod: &Value) -> bool {
    let ready = find_condition(pod, "Ready").is_some_and(|ready| ready.is_true());
    !ready && text(pod, &["status", "phase"]) != "Succeeded"
}

fn find_container_blocker(pod: &str, status: &Value) -> Option<Blocker> {
    let subject = |status: &Value| {
        let container = text(status, &["name"]);
        format!("pod {pod}, container {container}")
    };
    if let Some(waiting) = field(status, &["state", "waiting"]) {
        let reason = text(waiting, &["reason"]);
        if matches!(reason, "" | "ContainerCreating" | "PodInitializing") {
            return None;
        }
        // In a crash loop, the kubelet only reports the back-off time; how the container ended is more helpful.
        let ended = field(status, &["lastState", "terminated"]);
        let message = match (reason, ended) {
            ("CrashLoopBackOff", Some(ended)) => describe_end(ended),
            _ => text(waiting, &["message"]).to_owned(),
        };
        return Some(Blocker::new(&subject(status), reason, &message));
    }
    let ended = field(status, &["state", "terminated"])?;
    let failed = field(ended, &["exitCode"]).is_some_and(|code| code != 0);
    let code = field(ended, &["exitCode"])?;
    let reason = match text(ended, &["reason"]) {
        "" => "Error",
        reason => reason,
    };
    failed.then(|| Blocker::new(&subject(status), reason, &format!("exit code {code}")))
}

/// Formats the end of a container: `OOMKilled, exit code 137`.
fn describe_end(ended: &Value) -> String {
    let code = field(ended, &["exitCode"]).map_or_else(|| "?".to_owned(), Value::to_string);
    match text(ended, &["reason"]) {
        "" => format!("exit code {code}"),
        reason => format!("{reason}, exit code {code}"),
    }
}
