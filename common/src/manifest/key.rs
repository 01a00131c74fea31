//! The identity of an object: group, kind, namespace and name. The version is not part of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Gvk {
    /// API group, empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl Gvk {
    /// Reads `apiVersion` and `kind` as objects spell them.
    #[must_use]
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    /// Returns the group, version and kind of an object, or `None` if apiVersion or kind is missing.
    #[must_use]
    pub fn of(object: &Value) -> Option<Self> {
        Some(Self::new(
            object.get("apiVersion")?.as_str()?,
            object.get("kind")?.as_str()?,
        ))
    }

    /// Returns `apiVersion` as objects spell it.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// The identity of an object in a cluster. It prints as `namespace/Kind name`, or `Kind name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectKey {
    /// API group, empty for core.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// Returns the key of an object as it is, or `None` if apiVersion, kind or name is missing.
    #[must_use]
    pub fn from_object(object: &Value) -> Option<Self> {
        let gvk = Gvk::of(object)?;
        let metadata = object.get("metadata")?;
        Some(Self {
            group: gvk.group,
            kind: gvk.kind,
            namespace: metadata
                .get("namespace")
                .and_then(Value::as_str)
                .map(str::to_owned),
            name: metadata.get("name")?.as_str()?.to_owned(),
        })
    }
}

impl ObjectKey {
    /// Returns whether the object's values are confidential. If so, no error, plan, diff or record contains them.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && self.kind == "Secret"
    }

    /// Returns whether the object is a CustomResourceDefinition.
    #[must_use]
    pub fn is_definition(&self) -> bool {
        self.group == "apiextensions.k8s.io" && self.kind == "CustomResourceDefinition"
    }

    /// Returns whether a manifest with the key `written` describes this object of a cluster. A manifest without a namespace gets `target`;
    /// that of a cluster-scoped object loses its namespace (semantics 7.1).
    #[must_use]
    pub fn is_described_by(&self, written: &Self, target: &str) -> bool {
        let namespace = written.namespace.as_deref().unwrap_or(target);
        self.group == written.group
            && self.kind == written.kind
            && self.name == written.name
            && self.namespace.as_deref().is_none_or(|it| it == namespace)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{} {}", self.kind, self.name)
    }
}
