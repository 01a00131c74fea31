//! The format of a status (semantics 13.12): a release must not overwrite the status of another release if it does not understand it.

use super::AddonInstallation;
use crate::api::names::InstallationName;
use crate::entrance::UnreadableField;

/// The format that this release reads and writes.
pub const FORMAT: u32 = 1;

/// A status with a format that this release does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{installation} was recorded by a newer release: its status has the format {format}, and this release knows {FORMAT}; use that \
     release"
)]
pub struct NewerFormat {
    /// The name of the installation.
    pub installation: InstallationName,
    /// The format of its status.
    pub format: u32,
}

/// Why this release must not act on a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A newer release wrote it.
    #[error(transparent)]
    Newer(NewerFormat),
    /// Parts of it cannot be read.
    #[error("{installation}: {unreadable}; write it again with kubectl, or uninstall it")]
    Unreadable {
        /// The name of the installation.
        installation: InstallationName,
        /// The part that cannot be read, and the reason.
        unreadable: UnreadableField,
    },
}

/// Refuses a record that a newer release wrote, or that cannot be read completely.
///
/// # Errors
/// [`RecordError`].
pub fn check(record: &AddonInstallation) -> Result<(), RecordError> {
    check_status(record)?;
    match &record.spec.unreadable {
        Some(unreadable) => Err(unreadable_error(record, unreadable)),
        None => Ok(()),
    }
}

/// Refuses to overwrite the status of a newer release, or one that cannot be read. The objects of any other record are known, so it
/// can be uninstalled.
///
/// # Errors
/// [`RecordError`].
pub fn check_status(record: &AddonInstallation) -> Result<(), RecordError> {
    let unreadable = record.spec.unreadable.as_ref();
    if let Some(unreadable) = unreadable.filter(|one| one.field == AddonInstallation::STATUS) {
        return Err(unreadable_error(record, unreadable));
    }
    let status = record.status.as_ref();
    let format = status.and_then(|status| status.format).unwrap_or(FORMAT);
    if format <= FORMAT {
        return Ok(());
    }
    Err(RecordError::Newer(NewerFormat {
        installation: record_name(record),
        format,
    }))
}

fn unreadable_error(record: &AddonInstallation, unreadable: &UnreadableField) -> RecordError {
    RecordError::Unreadable {
        installation: record_name(record),
        unreadable: unreadable.clone(),
    }
}

fn record_name(record: &AddonInstallation) -> InstallationName {
    let metadata = &record.metadata;
    InstallationName {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(status: &Value) -> AddonInstallation {
        serde_json::from_value(json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1",
            "kind": "AddonInstallation",
            "metadata": {"name": "till", "namespace": "shop"},
            "spec": {"addonRef": {"name": "till"}},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn only_a_newer_format_is_refused() {
        for (status, is_refused) in [
            (json!({}), false),
            (json!({"format": 1}), false),
            (json!({"format": 2}), true),
        ] {
            assert_eq!(check(&record(&status)).is_err(), is_refused, "{status}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_uninstalled_at_most() {
        for (field, may_be_uninstalled) in [("spec.values", true), ("status", false)] {
            let mut record = record(&json!({}));
            record.spec.unreadable = Some(UnreadableField {
                field,
                why: "why".to_owned(),
            });
            assert!(check(&record).is_err());
            assert_eq!(check_status(&record).is_ok(), may_be_uninstalled);
        }
    }

    #[test]
    fn fields_of_other_releases_stay() {
        let status = json!({
            "conditions": [],
            "format": 1,
            "later": {"a": [1, {"b": null}], "c": "d"},
            "phase": "Ready",
        });
        let read = record(&status);
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written["status"], status);
    }
}
