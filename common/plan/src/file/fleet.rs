//! The plan file of a fleet: a plan for each cluster, and where that cluster is found. It holds no credentials.

use serde::{Deserialize, Serialize};

use super::{PlanFile, VERSION};

/// `kind` of the plan file of a fleet.
pub const KIND_FLEET: &str = "AddonFleetPlan";

/// A plan file of several clusters without its digest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FleetPlan {
    /// [`VERSION`].
    pub api_version: String,
    /// [`KIND_FLEET`].
    pub kind: String,
    /// In the order in which they are changed.
    pub clusters: Vec<ClusterPlan>,
}

/// The plan of one cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterPlan {
    /// Where the cluster is found.
    pub at: FleetClusterSource,
    /// What happens there.
    pub plan: PlanFile,
}

/// Where a cluster of a fleet is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FleetClusterSource {
    /// A context of the kubeconfig.
    Context(String),
    /// A namespace that stands for it.
    Namespace(String),
}

impl FleetPlan {
    /// A plan of these clusters.
    #[must_use]
    pub fn new(clusters: Vec<ClusterPlan>) -> Self {
        Self {
            api_version: VERSION.to_owned(),
            kind: KIND_FLEET.to_owned(),
            clusters,
        }
    }
}

impl FleetClusterSource {
    /// The name of the context or namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Context(name) | Self::Namespace(name) => name,
        }
    }
}
