//! Operations whose client is gone: nothing goes on until someone continues them.

use common::api::installation::{AddonInstallation, Operation};
use common::api::names::InstallationName;
use jiff::Timestamp;

use crate::records::name_of;

/// What continues an operation whose holder has not renewed its lock: the next client may; `None` while it lives, or while a deletion
/// is under way.
pub(super) fn continued_by(
    record: &AddonInstallation,
    operation: &Operation,
    now: Timestamp,
) -> Option<String> {
    let silent = now.duration_since(operation.renewed_at.0).as_secs();
    if silent < i64::from(operation.lease_seconds) || record.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let InstallationName { namespace, name } = name_of(record);
    Some(match &record.spec.addon_ref.directory {
        Some(directory) if operation.verb != "uninstall" => {
            format!("kubectl addons sync {directory}")
        }
        _ if operation.verb == "uninstall" => {
            format!("kubectl addons uninstall {name} -n {namespace}")
        }
        _ => format!("kubectl addons upgrade {name} -n {namespace}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Health, state};
    use super::*;

    fn record(verb: &str, directory: Option<&str>) -> AddonInstallation {
        let record = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"addonRef": {"name": "web", "directory": directory}},
            "status": {"operation": {
                "id": "1", "verb": verb, "holder": "me", "startedAt": "1970-01-01T00:00:00Z",
                "renewedAt": "1970-01-01T00:00:10Z", "leaseSeconds": 15,
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
}
