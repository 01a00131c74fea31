//! The error for a namespace of records that stands for no cluster (semantics 6.1).

use std::fmt;

use addons_admission::rules::cluster::no_cluster_message;

/// Why nothing is recorded in the namespace of a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct NotLocal {
    /// The namespace that was asked for.
    pub asked: String,
    /// The system namespace.
    pub system: String,
    /// Whether the namespace exists.
    pub exists: bool,
}

impl fmt::Display for NotLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, system, .. } = self;
        if self.exists {
            return write!(f, "namespace {}", no_cluster_message(asked, system));
        }
        write!(
            f,
            "namespace {asked} does not exist: installations of this cluster belong in {system}"
        )
    }
}
