//! Interrupted operations: their client no longer renews the lock, so they do not proceed until another client continues them.

use crate::continuation::Continuation;
use common::api::installation::{AddonInstallation, OperationRecord};
use jiff::Timestamp;

/// Returns how to continue an operation whose holder has not renewed its lock. Returns `None` while the holder is alive, or during a
/// deletion.
pub(super) fn find_continuation(
    record: &AddonInstallation,
    operation: &OperationRecord,
    now: Timestamp,
) -> Option<Continuation> {
    if operation.is_alive_at(now) || record.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let target = operation.target.as_ref();
    Some(Continuation::from_record(record, &operation.verb, target))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Health, Standing, StandingFacts, StandingState, assess_standing};
    use super::*;

    fn record(verb: &str, directory: Option<&str>) -> AddonInstallation {
        let record = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"addonRef": {"name": "web", "directory": directory}},
            "status": {"operation": {
                "id": "1", "verb": verb, "holder": "me", "startedAt": "1970-01-01T00:00:00Z",
                "renewedAt": "1970-01-01T00:00:10Z", "leaseSeconds": 15,
                "target": {"version": "1.0.0"},
            }},
        });
        serde_json::from_value(record).unwrap()
    }

    fn at(record: &AddonInstallation, seconds: i64) -> Standing {
        let facts = StandingFacts {
            health: &Health::default(),
            offered: None,
            other: None,
            now: Timestamp::from_second(seconds).unwrap(),
        };
        assess_standing(record, &facts)
    }

    #[test]
    fn an_operation_whose_client_is_gone_does_not_progress() {
        let upgrade = record("upgrade", None);
        assert_eq!(at(&upgrade, 20).to_string(), "Progressing: upgrade by me");
        assert_eq!(at(&upgrade, 20).continuation, None);
        for verb in ["upgrade", "uninstall", "rollback", "adopt", "unheard-of"] {
            let record = record(verb, None);
            let found = at(&record, 25);
            assert_eq!(
                (found.state, found.message.as_str()),
                (StandingState::Interrupted, verb)
            );
            let target = record
                .status
                .as_ref()
                .and_then(|it| it.operation.as_ref()?.target.as_ref());
            assert_eq!(
                found.continuation,
                Some(Continuation::from_record(&record, &verb.into(), target))
            );
        }
        let mut going = record("uninstall", None);
        going.metadata.deletion_timestamp =
            serde_json::from_value(json!("1970-01-01T00:00:00Z")).unwrap();
        assert_eq!(at(&going, 60).to_string(), "Progressing: uninstall by me");
    }
}
