//! The plan file of a fleet: a plan for each cluster, and the context or namespace of the cluster. It holds no credentials.

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
    /// The clusters, in the order in which they are changed.
    pub clusters: Vec<ClusterPlan>,
}

/// The plan of one cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterPlan {
    /// How to find the cluster.
    pub at: FleetClusterSource,
    /// The plan for it.
    pub plan: PlanFile,
}

/// How to find a cluster of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FleetClusterSource {
    /// A context of the kubeconfig.
    Context(String),
    /// A namespace that represents it.
    Namespace(String),
}

impl FleetPlan {
    /// Creates a plan file for these clusters.
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
    /// Returns the name of the context or namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Context(name) | Self::Namespace(name) => name,
        }
    }
}
