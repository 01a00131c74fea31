//! What other tools had recorded of what was taken over from them (semantics 12).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The records of one release or application of another tool. They are kept as they were, where the tool does not find them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormerRecord {
    /// Whose they are.
    pub tool: FormerTool,
    /// The namespace that holds them.
    pub namespace: String,
    /// Name of the release or application.
    pub name: String,
    /// The objects that they consist of, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<FormerObject>,
    /// Whether all of them are set aside; before that, the next operation continues.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_set_aside: bool,
}

/// A tool whose records are set aside.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum FormerTool {
    /// A Secret or ConfigMap for each revision of a release.
    Helm,
    /// A ConfigMap for an application, and one for each of its changes.
    Kapp,
}

/// A Secret or ConfigMap of another tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FormerObject {
    /// `Secret` or `ConfigMap`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid: another object of that name is not touched.
    pub uid: String,
}

impl FormerRecord {
    /// Whether both are of the same release or application.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.tool, &self.namespace, &self.name) == (other.tool, &other.namespace, &other.name)
    }
}

impl fmt::Display for FormerRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.tool {
            FormerTool::Helm => "Helm release",
            FormerTool::Kapp => "kapp application",
        };
        write!(f, "{words} {}/{}", self.namespace, self.name)
    }
}
