//! The plan file: what a command would do, as JSON that people and CI review and that `apply` runs.
//!
//! It holds the plan of the command as JSON and a digest of it. To run it is to plan again and to compare the two:
//! [`moved()`] lists everything that differs. Secrets are in it by name only: no values, and no digests, which could be
//! guessed (semantics 13 and 17); the resourceVersions of the Secrets of `valuesFrom` are part of `to.valuesHash`.
//! `spec.values` stands in it as it was typed: Secrets have no place there (semantics 10).
//!
//! Two plans of an unmoved cluster are the same bytes: the file holds no time and no random number.

mod fleet;
mod moved;
mod read;

use serde::{Deserialize, Serialize};

use super::changes::ObjectDiff;
use super::choices::Choices;
use super::graph::Graph;
use super::{InstallationPlan, RecordNamespace};

pub use fleet::{ClusterPlan, FleetClusterSource, FleetPlan, KIND_FLEET};
pub use moved::{Difference, PlanOutdated, moved, moved_changes, moved_record};
pub use read::{FileError, LARGEST, Plans, expected, read, write};

/// `kind` of a plan file.
pub const KIND: &str = "AddonPlan";
/// `apiVersion` of a plan file: it has one of its own, for it changes whenever the plan does.
pub const VERSION: &str = "kubectl-addons.dev/v1alpha8";

/// A plan file without its digest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanFile {
    /// [`VERSION`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Version of the program that wrote it.
    pub tool: String,
    /// The cluster that it was made for.
    pub cluster: PlanFileCluster,
    /// What the user decided about how plans are made.
    pub choices: Choices,
    /// Whether our own definitions are missing: they are installed first.
    pub defines: bool,
    /// Namespaces of first records, sorted by name.
    pub namespaces: Vec<RecordNamespace>,
    /// What changes, in the order of the command.
    pub installations: Vec<InstallationPlan>,
    /// Which object waits for which, over all installations.
    pub graph: Graph,
    /// What the server said to a dry run, field by field; Secrets are masked. It decides nothing, but who reviews the plan reads it: it
    /// is compared as everything else is.
    pub changes: Vec<ObjectDiff>,
}

/// Which cluster a plan was made for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanFileCluster {
    /// The namespace whose uid tells clusters apart: kube-system, or that of the installations where kube-system may not be read.
    pub namespace: String,
    /// The uid of that namespace.
    pub uid: String,
    /// `gitVersion` of its API server: what entries have to fit.
    pub version: String,
}

#[cfg(test)]
mod tests;
