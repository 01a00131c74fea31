//! The plan file: the plan of a command as JSON, for review by people and CI, which `apply` runs.
//!
//! It holds the plan and its digest. `apply` plans again and compares both plans: [`moved()`] lists all differences
//! (semantics 17.1). The file names Secrets, but holds neither their values nor digests of them, which would allow guesses;
//! the resourceVersions of the Secrets of `valuesFrom` are part of `to.valuesHash`. It holds `spec.values` as entered, because
//! these must not contain secrets.
//!
//! Plans for an unchanged cluster are equal byte for byte: the file holds no time and no random number.

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
/// `apiVersion` of a plan file. It has its own version because it changes whenever the plan types do.
pub const VERSION: &str = "kubectl-addons.dev/v1alpha9";

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
    /// The cluster for which the plan was made.
    pub cluster: PlanFileCluster,
    /// The user's choices about how plans are made.
    pub choices: Choices,
    /// Whether our own CRDs are missing, and are installed first.
    pub defines: bool,
    /// Namespaces that must exist before the first records are written, sorted by name.
    pub namespaces: Vec<RecordNamespace>,
    /// The plans of the installations, in the order of the command.
    pub installations: Vec<InstallationPlan>,
    /// The graph of which object waits for which, across all installations.
    pub graph: Graph,
    /// The changes of fields in a dry run, with masked Secrets. `apply` compares them like everything else, because the reviewer
    /// relied on them.
    pub changes: Vec<ObjectDiff>,
}

/// Which cluster a plan was made for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanFileCluster {
    /// The namespace whose uid identifies the cluster: kube-system or, if that may not be read, the one of the installations.
    pub namespace: String,
    /// The uid of that namespace.
    pub uid: String,
    /// `gitVersion` of its API server, against which entries are checked.
    pub version: String,
}

#[cfg(test)]
mod tests;
