//! `spec.patches`, with the fields of kustomize's `patches`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A patch of rendered objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectPatch {
    /// The objects that it changes. A strategic merge patch without a target changes the object that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<PatchTarget>,
    /// YAML: a list of JSON 6902 operations, or a strategic merge patch, which is a JSON merge patch for custom resources. It must not
    /// contain secrets.
    #[schemars(length(min = 1, max = 65536))]
    pub patch: String,
}

/// Selects rendered objects. All fields have to match; an absent field matches every object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchTarget {
    /// API group, as a regular expression that matches the whole group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub group: Option<String>,
    /// API version, as a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub version: Option<String>,
    /// Kind, as a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub kind: Option<String>,
    /// Name, as a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Namespace, as a regular expression. An object that names none counts as in the target namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub namespace: Option<String>,
    /// Label selector, as with `kubectl -l`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub label_selector: Option<String>,
    /// The same for annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub annotation_selector: Option<String>,
}
