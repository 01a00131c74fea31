//! The last operation, if it failed. Objects that are not ready do not show this by themselves.

use crate::Verb;
use crate::continuation::Continuation;
use common::api::conditions::{self, STALLED};
use common::api::installation::{AddonInstallation, AddonInstallationStatus, InstallationPhase};
use common::catalogue::version_label;

/// Why the last operation failed, and how to continue it.
#[derive(Clone, Debug)]
pub(super) struct FailedOperation {
    /// The recorded reason.
    pub(super) why: String,
    /// How to continue it.
    pub(super) next: Continuation,
}

impl FailedOperation {
    /// Reads the failure from a record. Returns `None` if the last operation did not fail, or no reason is recorded.
    pub(super) fn from_record(record: &AddonInstallation) -> Option<Self> {
        let status = record.status.as_ref();
        let status = status.filter(|status| status.phase == Some(InstallationPhase::Failed))?;
        let failed = status.history.first().filter(|one| !one.is_done())?;
        let stalled = conditions::find_raised(&status.conditions, STALLED)?;
        Some(Self {
            why: stalled.message.clone(),
            next: Continuation::from_record(record, &failed.verb, Some(&failed.installed)),
        })
    }
}

/// Describes the failed operation, `upgrade to 1.2.0`. Returns `None` if the last operation did not fail, or is not known.
pub(super) fn describe_failed_operation(
    status: Option<&AddonInstallationStatus>,
) -> Option<String> {
    let status = status.filter(|status| status.phase == Some(InstallationPhase::Failed))?;
    let failed = status.history.first().filter(|one| !one.is_done())?;
    let installed = &failed.installed;
    let version = (installed.version.as_str(), installed.id.as_str());
    let to = match (failed.verb.known(), version) {
        (Some(Verb::Upgrade | Verb::Rollback), (version, id))
            if !(version.is_empty() && id.is_empty()) =>
        {
            format!(" to {}", version_label(version, id))
        }
        _ => String::new(),
    };
    Some(format!("{}{to}", failed.verb))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_failed_operation_is_named() {
        let status = |phase: &str, history: Value| json!({"phase": phase, "history": history});
        let ended = |verb: &str, installed: Value, outcome: &str| json!([{"verb": verb, "installed": installed, "outcome": outcome}]);
        let (new, id) = (json!({"version": "1.2.0", "id": "b"}), json!({"id": "b"}));
        for (status, expect) in [
            (status("Ready", ended("upgrade", new.clone(), "done")), None),
            (
                status("Failed", ended("upgrade", new.clone(), "timed out")),
                Some("upgrade to 1.2.0"),
            ),
            (
                status("Failed", ended("rollback", id, "timed out")),
                Some("rollback to id b"),
            ),
            (
                status("Failed", ended("install", new.clone(), "timed out")),
                Some("install"),
            ),
            (
                status("Failed", ended("uninstall", new, "timed out")),
                Some("uninstall"),
            ),
            (status("Failed", json!([])), None),
        ] {
            let read: AddonInstallationStatus = serde_json::from_value(status.clone()).unwrap();
            assert_eq!(
                describe_failed_operation(Some(&read)).as_deref(),
                expect,
                "{status}"
            );
        }
        assert_eq!(describe_failed_operation(None), None);
    }
}
