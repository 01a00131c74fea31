//! How the source of a version is turned into manifests, and the form that users fill in.

use std::fmt;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a source is turned into manifests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new("self.method != 'helm' || !has(self.requiredResourceTypes)")
    .message("requiredResourceTypes cannot be used with method helm"))]
#[x_kube(validation = kube::core::Rule::new("self.method == 'helm' || !has(self.helm)")
    .message("helm can only be set with method helm"))]
pub struct AddonTemplate {
    /// The rendering method.
    #[serde(default)]
    pub method: Method,
    /// Options of method helm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm: Option<HelmTemplate>,
    /// Types that the cluster must serve before the objects are applied. Not with method helm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub required_resource_types: Vec<ResourceType>,
    /// The form that users fill in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["internalName".into()]))]
    pub form_spec: Vec<FormField>,
    /// Whether values may only have keys that are in the form (semantics 10.3).
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
    /// Name of the release; by default that of the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_name: Option<String>,
    /// Who applies the objects.
    #[serde(default)]
    pub mode: HelmMode,
    /// Whether the CRDs in `crds/` of the chart and its subcharts are left out, because something else installs them.
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
    /// Helm renders the objects, and kubectl addons applies them.
    #[default]
    Objects,
    /// Helm installs a release itself.
    Release,
}

impl std::fmt::Display for HelmMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Objects => "objects",
            Self::Release => "release",
        })
    }
}

/// A type that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceType {
    /// API group; empty for the core group.
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

/// A field that users can fill in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormField {
    /// Name shown to users.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub display_name: String,
    /// Dotted path into the values.
    #[schemars(length(min = 1, max = 512))]
    pub internal_name: String,
    /// Type of the value.
    #[serde(default)]
    pub r#type: FieldType,
    /// Whether a value is required.
    #[serde(default)]
    pub required: bool,
    /// Value if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub default: Option<Value>,
    /// The allowed values, each of the field's type; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), schema_with = "any_values")]
    pub r#enum: Vec<Value>,
    /// A regular expression that text must match. It matches anywhere unless it has ^ and $.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub pattern: Option<String>,
    /// Text shown beside the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub help_text: Option<String>,
}

/// The types of form fields: only primitive ones, as in Kubermatic's proposal.
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

/// Returns the schema for a list of JSON values, which are kept unchanged.
fn any_values(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "items": any_value(generator)})
}

/// Returns the schema for any JSON value, which is kept unchanged.
fn any_value(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}
