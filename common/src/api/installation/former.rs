//! Records of other tools about adopted objects (semantics 12.12).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The records of one release or application of another tool. Their content is kept, but the tool no longer finds them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormerRecord {
    /// The tool that wrote the records.
    pub tool: FormerTool,
    /// The namespace of the records.
    pub namespace: String,
    /// Name of the release or application.
    pub name: String,
    /// The objects that hold the records, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<FormerObject>,
    /// Whether all of them are set aside. Until then, the next operation continues.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_set_aside: bool,
}

/// A tool whose records are set aside.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum FormerTool {
    /// Helm, with a Secret or ConfigMap for each revision of a release.
    Helm,
    /// kapp, with a ConfigMap for an application, and one for each of its changes.
    Kapp,
}

/// A Secret or ConfigMap of another tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FormerObject {
    /// `Secret` or `ConfigMap`.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// uid of the object. Another object with this name is not changed.
    pub uid: String,
}

impl FormerRecord {
    /// Whether both are records of the same release or application.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.tool, &self.namespace, &self.name) == (other.tool, &other.namespace, &other.name)
    }
}

impl fmt::Display for FormerTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Helm => "helm",
            Self::Kapp => "kapp",
        })
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
