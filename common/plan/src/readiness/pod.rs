//! Pods, including as blockers of their workload.

use serde_json::Value;

use super::Readiness;
use super::fields::{condition, field, is_true, text, why};

pub(super) fn pod(object: &Value) -> Readiness {
    match text(object, &["status", "phase"]) {
        "Succeeded" => return Readiness::current("completed"),
        "Failed" => return Readiness::failed(format!("failed: {}", failure(object))),
        _ => {}
    }
    if let Some(verdict) = containers(object).find_map(waiting) {
        return verdict;
    }
    if let Some(scheduled) = condition(object, "PodScheduled")
        && scheduled.is_false()
    {
        return Readiness::in_progress(format!("waiting: {}", scheduled.why()));
    }
    if condition(object, "Ready").is_some_and(|ready| ready.is_true()) {
        return Readiness::current("ready");
    }
    let statuses = list(object, "containerStatuses");
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
fn waiting(status: &Value) -> Option<Readiness> {
    let state = field(status, &["state", "waiting"])?;
    let reason = text(state, &["reason"]);
    let message = why(reason, text(state, &["message"]));
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
fn failure(object: &Value) -> String {
    let reason = text(object, &["status", "reason"]);
    let message = text(object, &["status", "message"]);
    if !reason.is_empty() || !message.is_empty() {
        return why(reason, message);
    }
    containers(object)
        .filter_map(|status| Some((status, field(status, &["state", "terminated"])?)))
        .find(|(_, ended)| field(ended, &["exitCode"]).is_some_and(|code| code != 0))
        .map_or_else(
            || why("", ""),
            |(status, ended)| {
                let name = text(status, &["name"]);
                let code = field(ended, &["exitCode"]).unwrap_or(&Value::Null);
                let reason = why(text(ended, &["reason"]), "");
                format!("container {name}: {reason}, exit code {code}")
            },
        )
}

/// Returns the container statuses, init containers first because they block the others.
pub(super) fn containers(object: &Value) -> impl Iterator<Item = &Value> {
    list(object, "initContainerStatuses")
        .iter()
        .chain(list(object, "containerStatuses"))
}

fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    field(object, &["status", name])
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
