//! Jobs: they are ready when they complete, unlike in kstatus.

use serde_json::Value;

use super::Readiness;
use super::fields::{field, find_condition, is_true, join_reason, number, text};

pub(super) fn assess_job(object: &Value) -> Readiness {
    if let Some(ended) = assess_ended(object) {
        return ended;
    }
    if is_true(object, &["spec", "suspend"]) {
        return Readiness::current("suspended");
    }
    let count = |name| number(object, &["status", name]).unwrap_or(0);
    let wanted = number(object, &["spec", "completions"]).unwrap_or(1);
    let mut message = format!("{}/{wanted} completed", count("succeeded"));
    let failed = count("failed");
    if failed > 0 {
        message.push_str(&format!(", {failed} failed"));
    }
    Readiness::in_progress(message)
}

/// Assesses a Job that has ended, even while it is being deleted for that.
pub(super) fn assess_ended(object: &Value) -> Option<Readiness> {
    if let Some(failed) = find_condition(object, "Failed")
        && failed.is_true()
    {
        return Some(Readiness::failed(format!("failed: {}", failed.why())));
    }
    let complete = find_condition(object, "Complete")?;
    complete.is_true().then(|| Readiness::current("completed"))
}

/// Whether the server deletes the Job after its end.
pub(super) fn has_ttl(object: &Value) -> bool {
    field(object, &["spec", "ttlSecondsAfterFinished"]).is_some_and(Value::is_number)
}

/// Assesses a Job that was deleted before its end was seen, by its events: the job controller writes one at its end.
#[must_use]
pub fn assess_ended_by_events(events: &[Value]) -> Option<Readiness> {
    let newest = events
        .iter()
        .filter(|event| text(event, &["source", "component"]) == "job-controller")
        .max_by_key(|event| text(event, &["lastTimestamp"]))?;
    match text(newest, &["reason"]) {
        "Completed" => Some(Readiness::current("completed")),
        reason @ ("BackoffLimitExceeded"
        | "DeadlineExceeded"
        | "PodFailurePolicy"
        | "MaxFailedIndexesExceeded"
        | "FailedIndexes") => {
            let why = join_reason(reason, text(newest, &["message"]));
            Some(Readiness::failed(format!("failed: {why}")))
        }
        _ => None,
    }
}
