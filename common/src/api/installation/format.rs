//! The format of a status (semantics 13): what another release wrote must not be written over by one that does not know what it means.

use super::AddonInstallation;
use crate::api::names::InstallationName;

/// The format that this release reads and writes.
pub const FORMAT: u32 = 1;

/// The status was written in a format that this release does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{installation} was recorded by a newer release: its status has the format {format}, and this release knows {FORMAT}; use that \
     release"
)]
pub struct NewerFormat {
    /// The installation.
    pub installation: InstallationName,
    /// Its format.
    pub format: u32,
}

/// Refuses to write over a record of a newer release.
///
/// # Errors
/// [`NewerFormat`].
pub fn check(record: &AddonInstallation) -> Result<(), NewerFormat> {
    let status = record.status.as_ref();
    let Some(format) = status.and_then(|status| status.format) else {
        return Ok(());
    };
    if format <= FORMAT {
        return Ok(());
    }
    let metadata = &record.metadata;
    Err(NewerFormat {
        installation: InstallationName {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        },
        format,
    })
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
