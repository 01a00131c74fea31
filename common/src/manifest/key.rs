//! Identity of an object: group, kind, namespace and name. The version is not part of it.

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
    /// From `apiVersion` and `kind` as an object spells them.
    #[must_use]
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    /// Of an object; `None` without apiVersion or kind.
    #[must_use]
    pub fn of(object: &Value) -> Option<Self> {
        Some(Self::new(
            object.get("apiVersion")?.as_str()?,
            object.get("kind")?.as_str()?,
        ))
    }

    /// `apiVersion` as an object spells it.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Identity of an object in a cluster. Printed as `namespace/Kind name`, or `Kind name`.
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
    /// Of an object as it stands; `None` without apiVersion, kind or name.
    #[must_use]
    pub fn of(object: &Value) -> Option<Self> {
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
    /// Whether its values are confidential: no error, plan, diff or record holds them.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && self.kind == "Secret"
    }

    /// Whether this object of a cluster is the one that a manifest with the key `written` means: objects that name no namespace get
    /// `target`, and one that is cluster-scoped loses its own (semantics 7).
    #[must_use]
    pub fn is_meant_by(&self, written: &Self, target: &str) -> bool {
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
