//! Jobs: completion is waited for, which kstatus does not do.

use serde_json::Value;

use super::Readiness;
use super::fields::{condition, is_true, number};

pub(super) fn job(object: &Value) -> Readiness {
    if let Some(failed) = condition(object, "Failed")
        && failed.is_true()
    {
        return Readiness::failed(format!("failed: {}", failed.why()));
    }
    if condition(object, "Complete").is_some_and(|complete| complete.is_true()) {
        return Readiness::current("completed");
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
