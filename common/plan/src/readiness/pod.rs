//! Pods, including as blockers of their workload.

use serde_json::Value;

use super::Readiness;
use super::fields::{field, find_condition, is_true, join_reason, text};

pub(super) fn assess_pod(object: &Value) -> Readiness {
    match text(object, &["status", "phase"]) {
        "Succeeded" => return Readiness::current("completed"),
        "Failed" => return Readiness::failed(format!("failed: {}", describe_failure(object))),
        _ => {}
    }
    if let Some(verdict) = container_statuses(object).find_map(assess_waiting) {
        return verdict;
    }
    if let Some(scheduled) = find_condition(object, "PodScheduled")
        && scheduled.is_false()
    {
        return Readiness::in_progress(format!("waiting: {}", scheduled.why()));
    }
    if find_condition(object, "Ready").is_some_and(|ready| ready.is_true()) {
        return Readiness::current("ready");
    }
    let statuses = list_statuses(object, "containerStatuses");
    let ready = statuses
        .iter()
        .filter(|status| is_true(status, &["ready"]))
        .count();
    let all = field(object, &["spec", "containers"])
        .and_then(Value::as_array)
        .map_or(statuses.len(), Vec::len);
    Readiness::in_progress(format!("{ready}/{all} containers ready"))
}

/// Assesses a container that is waiting. One in a crash loop has failed (kstatus); a missing image or ConfigMap may still appear.
fn assess_waiting(status: &Value) -> Option<Readiness> {
    let state = field(status, &["state", "waiting"])?;
    let reason = text(state, &["reason"]);
    let message = join_reason(reason, text(state, &["message"]));
    match reason {
        "CrashLoopBackOff" => {
            let name = text(status, &["name"]);
            let last = field(status, &["lastState", "terminated"]);
            let code = last.and_then(|last| field(last, &["exitCode"]));
            let code = code.map_or_else(String::new, |code| format!(", exit code {code}"));
            Some(Readiness::failed(format!(
                "CrashLoopBackOff of container {name}{code}"
            )))
        }
        "InvalidImageName" => Some(Readiness::failed(message)),
        "ImagePullBackOff"
        | "ErrImagePull"
        | "ErrImageNeverPull"
        | "ImageInspectError"
        | "RegistryUnavailable"
        | "CreateContainerConfigError"
        | "CreateContainerError"
        | "RunContainerError" => Some(Readiness::in_progress(format!("waiting: {message}"))),
        _ => None,
    }
}

/// Describes why a pod failed: its own reason (Evicted), else that of the first container that failed.
fn describe_failure(object: &Value) -> String {
    let reason = text(object, &["status", "reason"]);
    let message = text(object, &["status", "message"]);
    if !reason.is_empty() || !message.is_empty() {
        return join_reason(reason, message);
    }
    container_statuses(object)
        .filter_map(|status| Some((status, field(status, &["state", "terminated"])?)))
        .find(|(_, ended)| field(ended, &["exitCode"]).is_some_and(|code| code != 0))
        .map_or_else(
            || join_reason("", ""),
            |(status, ended)| {
                let name = text(status, &["name"]);
                let code = field(ended, &["exitCode"]).unwrap_or(&Value::Null);
                let reason = join_reason(text(ended, &["reason"]), "");
                format!("container {name}: {reason}, exit code {code}")
            },
        )
}

/// Returns the container statuses, init containers first because they block the others.
pub(super) fn container_statuses(object: &Value) -> impl Iterator<Item = &Value> {
    list_statuses(object, "initContainerStatuses")
        .iter()
        .chain(list_statuses(object, "containerStatuses"))
}

fn list_statuses<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    field(object, &["status", name])
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
