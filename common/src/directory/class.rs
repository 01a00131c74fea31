//! The class of an object, from its labels. As in the current addon-manager, each object has a class of its own; in that of 2015, a
//! whole file had one.

use std::fmt;

use serde_json::Value;

use crate::api::names::{LABEL_MODE, MODE_ENSURE_EXISTS};

/// The label of 2015. Without a class, it means `Reconcile`.
pub const CLUSTER_SERVICE: &str = "kubernetes.io/cluster-service";
/// Both labels. The bare boolean `true` counts as text in them.
pub const LABELS: [&str; 2] = [LABEL_MODE, CLUSTER_SERVICE];

/// What `sync` does with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// Restored, updated, and pruned when its manifest is deleted.
    Reconcile,
    /// Created whenever it is missing, never changed or pruned.
    EnsureExists,
    /// Not applied.
    Ignored(Unmanaged),
}

/// Why an object is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmanaged {
    /// It has none of the labels.
    NoLabel,
    /// Its class is unknown.
    OtherMode(String),
}

impl fmt::Display for Unmanaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLabel => write!(f, "it has no label {LABEL_MODE}"),
            Self::OtherMode(mode) => write!(
                f,
                "its label {LABEL_MODE} is {mode:?}, and neither Reconcile nor EnsureExists"
            ),
        }
    }
}

/// Returns the class of an object. With `all`, an object without a label is reconciled.
#[must_use]
pub fn class(object: &Value, all: bool) -> Class {
    let labels = object.pointer("/metadata/labels");
    let label = |name: &str| labels.and_then(|labels| labels.get(name)?.as_str());
    let is_service = label(CLUSTER_SERVICE) == Some("true");
    match label(LABEL_MODE) {
        Some("Reconcile") => Class::Reconcile,
        Some(MODE_ENSURE_EXISTS) => Class::EnsureExists,
        // The addon-manager selects objects with the label of 2015 whatever their class, except EnsureExists.
        _ if is_service => Class::Reconcile,
        Some(other) => Class::Ignored(Unmanaged::OtherMode(other.to_owned())),
        None if all => Class::Reconcile,
        None => Class::Ignored(Unmanaged::NoLabel),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_classes() {
        let other = |mode: &str| Class::Ignored(Unmanaged::OtherMode(mode.to_owned()));
        let none = Class::Ignored(Unmanaged::NoLabel);
        // (mode, cluster-service, class, class with `all`)
        for (mode, service, expected, of_all) in [
            (Some("Reconcile"), None, Class::Reconcile, Class::Reconcile),
            (
                Some("Reconcile"),
                Some("true"),
                Class::Reconcile,
                Class::Reconcile,
            ),
            (
                Some("EnsureExists"),
                None,
                Class::EnsureExists,
                Class::EnsureExists,
            ),
            (
                Some("EnsureExists"),
                Some("true"),
                Class::EnsureExists,
                Class::EnsureExists,
            ),
            (None, Some("true"), Class::Reconcile, Class::Reconcile),
            (None, Some("false"), none.clone(), Class::Reconcile),
            (
                Some("Ignore"),
                Some("true"),
                Class::Reconcile,
                Class::Reconcile,
            ),
            (Some("Ignore"), None, other("Ignore"), other("Ignore")),
            (
                Some("reconcile"),
                None,
                other("reconcile"),
                other("reconcile"),
            ),
            (None, None, none, Class::Reconcile),
        ] {
            let mut labels = json!({});
            for (name, value) in [(LABEL_MODE, mode), (CLUSTER_SERVICE, service)] {
                if let Some(value) = value {
                    labels[name] = json!(value);
                }
            }
            let object = json!({"metadata": {"labels": labels}});
            assert_eq!(class(&object, false), expected, "{object}");
            assert_eq!(class(&object, true), of_all, "{object}");
        }
        assert_eq!(class(&json!({"metadata": {}}), true), Class::Reconcile);
    }
}
