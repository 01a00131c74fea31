//! What a user may do, as RBAC names it.

use std::fmt;

/// One right.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// `create`, `patch`, …
    pub verb: &'static str,
    /// API group; empty for core.
    pub group: String,
    /// Plural name, perhaps with a subresource: `addoninstallations/status`.
    pub resource: String,
    /// Namespace; `None` for all, and for kinds without one.
    pub namespace: Option<String>,
    /// One object only; empty for any.
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
