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
pub enum ObjectClass {
    /// Restored, updated, and pruned when its manifest is deleted.
    Reconcile,
    /// Created whenever it is missing, never changed or pruned.
    EnsureExists,
    /// Not applied.
    Ignored(UnmanagedReason),
}

/// Why an object is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnmanagedReason {
    /// It has none of the labels.
    NoLabel,
    /// Its class is unknown.
    OtherMode(String),
}

impl fmt::Display for UnmanagedReason {
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
pub fn read_class(object: &Value, all: bool) -> ObjectClass {
    let labels = object.pointer("/metadata/labels");
    let label = |name: &str| labels.and_then(|labels| labels.get(name)?.as_str());
    let is_service = label(CLUSTER_SERVICE) == Some("true");
    match label(LABEL_MODE) {
        Some("Reconcile") => ObjectClass::Reconcile,
        Some(MODE_ENSURE_EXISTS) => ObjectClass::EnsureExists,
        // The addon-manager selects objects with the label of 2015 whatever their class, except EnsureExists.
        _ if is_service => ObjectClass::Reconcile,
        Some(other) => ObjectClass::Ignored(UnmanagedReason::OtherMode(other.to_owned())),
        None if all => ObjectClass::Reconcile,
        None => ObjectClass::Ignored(UnmanagedReason::NoLabel),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_classes() {
        let other = |mode: &str| ObjectClass::Ignored(UnmanagedReason::OtherMode(mode.to_owned()));
        let none = ObjectClass::Ignored(UnmanagedReason::NoLabel);
        // (mode, cluster-service, class, class with `all`)
        for (mode, service, expected, of_all) in [
            (
                Some("Reconcile"),
                None,
                ObjectClass::Reconcile,
                ObjectClass::Reconcile,
            ),
            (
                Some("Reconcile"),
                Some("true"),
                ObjectClass::Reconcile,
                ObjectClass::Reconcile,
            ),
            (
                Some("EnsureExists"),
                None,
                ObjectClass::EnsureExists,
                ObjectClass::EnsureExists,
            ),
            (
                Some("EnsureExists"),
                Some("true"),
                ObjectClass::EnsureExists,
                ObjectClass::EnsureExists,
            ),
            (
                None,
                Some("true"),
                ObjectClass::Reconcile,
                ObjectClass::Reconcile,
            ),
            (None, Some("false"), none.clone(), ObjectClass::Reconcile),
            (
                Some("Ignore"),
                Some("true"),
                ObjectClass::Reconcile,
                ObjectClass::Reconcile,
            ),
            (Some("Ignore"), None, other("Ignore"), other("Ignore")),
            (
                Some("reconcile"),
                None,
                other("reconcile"),
                other("reconcile"),
            ),
            (None, None, none, ObjectClass::Reconcile),
        ] {
            let mut labels = json!({});
            for (name, value) in [(LABEL_MODE, mode), (CLUSTER_SERVICE, service)] {
                if let Some(value) = value {
                    labels[name] = json!(value);
                }
            }
            let object = json!({"metadata": {"labels": labels}});
            assert_eq!(read_class(&object, false), expected, "{object}");
            assert_eq!(read_class(&object, true), of_all, "{object}");
        }
        assert_eq!(
            read_class(&json!({"metadata": {}}), true),
            ObjectClass::Reconcile
        );
    }
}
