//! What failed, where the last operation did: objects that are not ready do not tell that by themselves.

use common::api::conditions::{self, STALLED};
use common::api::installation::{AddonInstallation, AddonInstallationStatus, Phase};
use common::catalogue::label;
use common::plan::continuation::Continuation;

use crate::continued;
use crate::records::name_of;

/// Why the last operation failed, and the way on.
#[derive(Clone, Debug)]
pub struct Failed {
    /// As it was recorded.
    pub why: String,
    /// The command that continues it.
    pub way_on: String,
}

impl Failed {
    /// `None` where the last operation did not fail, or nothing is recorded of it.
    #[must_use]
    pub fn of(record: &AddonInstallation) -> Option<Self> {
        let status = record.status.as_ref();
        let status = status.filter(|status| status.phase == Some(Phase::Failed))?;
        let failed = status.history.first().filter(|one| !one.is_done())?;
        let stalled = conditions::raised(&status.conditions, STALLED)?;
        let next = Continuation::of(record, &failed.verb, Some(&failed.installed));
        Some(Self {
            why: stalled.message.clone(),
            way_on: continued::command(&next, &name_of(record)),
        })
    }
}

/// `upgrade to 1.2.0`; `None` where the last operation did not fail, or is not known.
pub(super) fn operation(status: Option<&AddonInstallationStatus>) -> Option<String> {
    let status = status.filter(|status| status.phase == Some(Phase::Failed))?;
    let failed = status.history.first().filter(|one| !one.is_done())?;
    let installed = &failed.installed;
    let version = (installed.version.as_str(), installed.id.as_str());
    let to = match (failed.verb.as_str(), version) {
        ("upgrade" | "rollback", (version, id)) if !(version.is_empty() && id.is_empty()) => {
            format!(" to {}", label(version, id))
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
            assert_eq!(operation(Some(&read)).as_deref(), expect, "{status}");
        }
        assert_eq!(operation(None), None);
    }
}
