//! Decides which Secrets may become values or data of templates (semantics 16.5), and whether live objects may contain former values of
//! Secrets.
//!
//! Anyone who may create an installation may name any Secret of its namespace, and the user who installs it may be able to read more
//! Secrets than its author. Therefore, outside of the system namespace, the Secret itself has to agree with a label. The kubeconfig of a
//! cluster is in the namespace that stands for the cluster. It never becomes part of an object, whatever its labels.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::installation::{AddonInstallationStatus, Installed};
use crate::api::names::LABEL_VALUES;

/// Why a Secret must not become values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretValuesError {
    /// The label is missing.
    #[error(
        "Secret {namespace}/{name} has no label {LABEL_VALUES}=true, without which no values are taken from it outside the system \
         namespace"
    )]
    Unlabelled {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The Secret contains a kubeconfig.
    #[error("Secret {namespace}/{name} holds a kubeconfig, which never becomes values")]
    Kubeconfig {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// Checks whether a Secret may be read, according to its label. `is_of_system`: the namespace is the system namespace, in which only
/// administrators create installations.
///
/// # Errors
/// [`SecretValuesError::Unlabelled`].
pub fn check_label(
    namespace: &str,
    name: &str,
    is_of_system: bool,
    labels: &BTreeMap<String, String>,
) -> Result<(), SecretValuesError> {
    if is_of_system || labels.get(LABEL_VALUES).is_some_and(|it| it == "true") {
        return Ok(());
    }
    Err(SecretValuesError::Unlabelled {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

/// Checks whether the content of a Secret may become values.
///
/// # Errors
/// [`SecretValuesError::Kubeconfig`].
pub fn check_content(
    namespace: &str,
    name: &str,
    content: &Value,
) -> Result<(), SecretValuesError> {
    let has = |list: &str, item: &str| {
        let mut items = content[list].as_array().into_iter().flatten();
        items.any(|one| one[item].is_object())
    };
    if has("clusters", "cluster") && has("users", "user") {
        return Err(SecretValuesError::Kubeconfig {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        });
    }
    Ok(())
}

/// Returns whether anything that may have been applied last was rendered from another state of Secrets than `to`: the installed version,
/// later failed attempts, or an interrupted operation. Live objects then contain former values, which output cannot recognise to mask
/// them.
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_agrees_by_its_label_outside_the_system_namespace() {
        for (is_of_system, label, expected) in [
            (true, None, true),
            (true, Some("false"), true),
            (false, None, false),
            (false, Some("false"), false),
            (false, Some(""), false),
            (false, Some("true"), true),
        ] {
            let labels = label.map(|label| (LABEL_VALUES.to_owned(), label.to_owned()));
            let labels = labels.into_iter().collect();
            let found = check_label("shop", "db", is_of_system, &labels);
            assert_eq!(found.is_ok(), expected, "{is_of_system} {label:?}");
        }
    }

    #[test]
    fn a_kubeconfig_is_known_by_what_it_holds() {
        let clusters = json!([{"name": "c", "cluster": {"server": "https://example.test"}}]);
        let users = json!([{"name": "u", "user": {"token": "t"}}]);
        for (content, expected) in [
            (json!({"clusters": clusters, "users": users}), false),
            (
                json!({"kind": "Config", "clusters": clusters, "users": users, "more": 1}),
                false,
            ),
            (
                json!({"clusters": ["east"], "users": [{"user": "ann"}]}),
                true,
            ),
            (json!({"clusters": [], "users": []}), true),
            (json!({"password": "p"}), true),
        ] {
            let found = check_content("shop", "admin-kubeconfig", &content);
            assert_eq!(found.is_ok(), expected, "{content}");
        }
    }

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
