//! Values that are read from Secrets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A source of values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesFromSource {
    /// A key of a Secret in the installation's namespace; its text is YAML.
    pub secret_key_ref: SecretKeyRef,
}

/// A key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    pub name: String,
    /// Key in its data.
    pub key: String,
    /// Whether the Secret or its key may be missing.
    #[serde(default)]
    pub optional: bool,
}
