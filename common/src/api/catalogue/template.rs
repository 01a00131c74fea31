//! How the source of a version becomes manifests, and what a user is asked for.

use std::fmt;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a source becomes manifests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new("self.method != 'helm' || !has(self.requiredResourceTypes)")
    .message("requiredResourceTypes cannot be used with method helm"))]
#[x_kube(validation = kube::core::Rule::new("self.method == 'helm' || !has(self.helm)")
    .message("helm can only be set with method helm"))]
pub struct Template {
    /// The rendering method.
    #[serde(default)]
    pub method: Method,
    /// Only with method helm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm: Option<HelmTemplate>,
    /// Types that the cluster must serve before the objects are applied; not with helm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub required_resource_types: Vec<ResourceType>,
    /// What a user is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["internalName".into()]))]
    pub form_spec: Vec<FormField>,
    /// Whether values may have no other keys than those of the form (semantics 10).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub form_only: bool,
}

/// The rendering methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Plain YAML.
    #[default]
    Manifest,
    /// Go templates.
    GoTemplate,
    /// A Helm chart.
    Helm,
}

/// How a chart is rendered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmTemplate {
    /// Name of the release; default: the installation's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_name: Option<String>,
    /// Who applies.
    #[serde(default)]
    pub mode: HelmMode,
    /// Whether the definitions in `crds/` of the chart and of the charts in it are left out: something else brings them.
    #[serde(
        default,
        rename = "skipCRDs",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub skip_crds: bool,
}

/// Who applies what helm renders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HelmMode {
    /// Helm renders, our engine applies.
    #[default]
    Objects,
    /// Helm installs a release of its own.
    Release,
}

/// A type that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceType {
    /// API group, empty for core.
    #[serde(default)]
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind, plural or singular name.
    pub kind: String,
}

impl fmt::Display for ResourceType {
    /// `monitoring.coreos.com/v1 ServiceMonitor`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{} {}", self.version, self.kind)
    }
}

/// One field that a user can fill in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormField {
    /// What people see.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub display_name: String,
    /// Dotted path into the values.
    #[schemars(length(min = 1, max = 512))]
    pub internal_name: String,
    /// Type of the value.
    #[serde(default)]
    pub r#type: FieldType,
    /// Whether a value must be there.
    #[serde(default)]
    pub required: bool,
    /// Value where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub default: Option<Value>,
    /// The values that are allowed, each of the type; empty = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), schema_with = "any_values")]
    pub r#enum: Vec<Value>,
    /// What text must match: a regular expression, which matches anywhere unless it has ^ and $.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub pattern: Option<String>,
    /// Shown beside the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub help_text: Option<String>,
}

/// Types of form fields: primitive ones only (proposal).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FieldType {
    /// One line of text.
    #[default]
    Text,
    /// The same as text.
    String,
    /// Any JSON number.
    Number,
    /// true or false.
    Boolean,
    /// Several lines of text.
    TextArea,
}

/// JSON values, each kept as it is.
fn any_values(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "items": any_value(generator)})
}

/// Any JSON value, kept as it is.
fn any_value(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}
