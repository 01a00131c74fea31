//! Permissions, as RBAC names them.

use std::fmt;

/// A permission.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The verb, such as `create` or `patch`.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name, with an optional subresource, such as `addoninstallations/status`.
    pub resource: String,
    /// The namespace, or `None` for all namespaces and for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The name of the only object; empty for all.
    pub name: String,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, sub)) => (resource, format!("/{sub}")),
            None => (self.resource.as_str(), String::new()),
        };
        write!(f, "{} {resource}", self.verb)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        f.write_str(&subresource)?;
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}
