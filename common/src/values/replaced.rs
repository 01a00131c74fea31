//! Detects whether live objects may contain former values of Secrets. Masking does not cover them, because only
//! the current values are known.

use crate::api::installation::{AddonInstallationStatus, Installed};

/// Returns whether anything that may have been applied last was rendered from another state of Secrets than `to`: the installed version,
/// later failed attempts, or an interrupted operation.
#[must_use]
pub fn secrets_were_replaced(status: Option<&AddonInstallationStatus>, to: &Installed) -> bool {
    let Some(status) = status else {
        return false;
    };
    let operation = status.operation.as_ref();
    let interrupted = operation.and_then(|operation| operation.target.as_ref());
    let failed = status.history.iter().take_while(|one| !one.is_done());
    let failed = failed.map(|one| &one.installed);
    let mut applied = status.installed.iter().chain(interrupted).chain(failed);
    applied.any(|applied| applied.secrets_hash != to.secrets_hash)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn installed(values: &str, secrets: &str) -> Value {
        json!({"version": "1.0.0", "valuesHash": values, "secretsHash": secrets})
    }

    #[test]
    fn secrets_of_everything_that_may_be_applied_count() {
        let to = serde_json::from_value(installed("v2", "s2")).unwrap();
        let failed = |secrets: &str| json!({"verb": "upgrade", "outcome": "failed", "installed": installed("v", secrets)});
        let done =
            json!({"verb": "install", "outcome": "done", "installed": installed("v0", "s0")});
        let time = "2026-01-01T00:00:00Z";
        let running = json!({"id": "1", "verb": "upgrade", "holder": "h", "startedAt": time, "renewedAt": time,
            "leaseSeconds": 15, "target": installed("v", "s1")});
        for (status, expect) in [
            (json!({}), false),
            (json!({"installed": installed("v1", "s2")}), false),
            (json!({"installed": installed("v1", "s1")}), true),
            (json!({"installed": installed("v1", "")}), true),
            (json!({"history": [failed("s2"), failed("s1")]}), true),
            (json!({"history": [failed("s2"), done]}), false),
            (json!({"operation": running}), true),
        ] {
            let read: AddonInstallationStatus = serde_json::from_value(status.clone()).unwrap();
            assert_eq!(secrets_were_replaced(Some(&read), &to), expect, "{status}");
        }
        assert!(!secrets_were_replaced(None, &to));
    }
}
