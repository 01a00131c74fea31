//! Decides which Secrets may become values or data of templates (semantics 16.5).
//!
//! Anyone who may create an installation may name any Secret of its namespace, and the user who installs it may be able to read more
//! Secrets than its author. Therefore, outside of the system namespace, the Secret itself has to agree with a label. The kubeconfig of a
//! cluster is in the namespace that stands for the cluster. It never becomes part of an object, whatever its labels.

use std::collections::BTreeMap;

use serde_json::Value;

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
}
