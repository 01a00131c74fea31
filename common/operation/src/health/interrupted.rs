//! Operations whose client is gone: nothing goes on until someone continues them.

use common::api::installation::{AddonInstallation, Operation};
use common::plan::continuation::Continuation;
use jiff::Timestamp;

use crate::continued;
use crate::records::name_of;

/// The command that continues an operation whose holder has not renewed its lock; `None` while it lives, or while a deletion is under
/// way.
pub(super) fn continued_by(
    record: &AddonInstallation,
    operation: &Operation,
    now: Timestamp,
) -> Option<String> {
    if operation.lives_at(now) || record.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let next = Continuation::of(record, &operation.verb, operation.target.as_ref());
    Some(continued::command(&next, &name_of(record)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Health, state};
    use super::*;

    const ADOPTED: &str = "Interrupted: adopt; to continue: kubectl addons adopt web@1.0.0 -n shop";
    const RECORDED_AGAIN: &str =
        "Interrupted: adopt; to continue: kubectl addons upgrade web -n shop";

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

    #[test]
    fn an_operation_whose_client_is_gone_does_not_progress() {
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        for (verb, directory, seconds, expected) in [
            ("upgrade", None, 20, "Progressing: upgrade by me"),
            (
                "upgrade",
                None,
                25,
                "Interrupted: upgrade; to continue: kubectl addons upgrade web -n shop",
            ),
            (
                "uninstall",
                Some("/srv/web"),
                60,
                "Interrupted: uninstall; to continue: kubectl addons uninstall web -n shop",
            ),
            (
                "install",
                Some("/srv/web"),
                60,
                "Interrupted: install; to continue: kubectl addons sync /srv/web",
            ),
            // `upgrade` would install the newest version instead.
            (
                "rollback",
                None,
                60,
                "Interrupted: rollback; to continue: kubectl addons rollback web -n shop",
            ),
            ("adopt", None, 60, ADOPTED),
            (
                "release",
                None,
                60,
                "Interrupted: release; to continue: kubectl addons adopt --release web -n shop",
            ),
            (
                "release",
                Some("/srv/web"),
                60,
                "Interrupted: release; to continue: kubectl addons adopt --release web -n shop",
            ),
            (
                "unheard-of",
                None,
                60,
                "Interrupted: unheard-of; to continue: kubectl addons upgrade web -n shop",
            ),
        ] {
            let record = record(verb, directory);
            let found = state(&record, &Health::default(), None, at(seconds));
            assert_eq!(found.to_string(), expected);
        }
        let mut going = record("uninstall", None);
        going.metadata.deletion_timestamp =
            serde_json::from_value(json!("1970-01-01T00:00:00Z")).unwrap();
        let found = state(&going, &Health::default(), None, at(60));
        assert_eq!(found.to_string(), "Progressing: uninstall by me");
    }

    #[test]
    fn what_was_recorded_again_is_not_adopted_but_upgraded() {
        for (is_adopted, expected) in [(true, ADOPTED), (false, RECORDED_AGAIN)] {
            let mut record = record("adopt", None);
            let installed = json!({"version": "1.0.0", "adopted": is_adopted});
            let status = record.status.as_mut().unwrap();
            status.installed = serde_json::from_value(installed).unwrap();
            let at = Timestamp::from_second(60).unwrap();
            let found = state(&record, &Health::default(), None, at);
            assert_eq!(found.to_string(), expected);
        }
    }
}
