//! The order of one command: a graph over the wanted objects of all its add-ons (product.md 3, Order).
//!
//! What an edge says holds for the whole command: `to` begins when `from` has come as far as [`Until`] says. Where nothing
//! stands between two objects, they are applied at the same time.

use serde::Serialize;

use crate::manifest::key::ObjectKey;

/// The order of one command. It has no cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// In the order in which they begin where no edge decides: rank, then place in the manifest, then key.
    pub nodes: Vec<Node>,
    /// Sorted, without duplicates.
    pub edges: Vec<Edge>,
}

/// Index into [`Graph::nodes`].
pub type NodeId = usize;

/// What edges lead to and from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Node {
    /// A wanted object. Its key is unique among the objects of a graph, but for a Namespace that several add-ons want.
    Object {
        /// Which add-on of the command.
        part: usize,
        /// The object.
        key: ObjectKey,
    },
    /// Nothing to apply: it is passed when everything before it has come far enough, and fails with it. It keeps an order
    /// between two groups of n and m objects at n + m edges.
    Gate {
        /// What people read: `wave 1`, `cert-manager is installed`.
        title: String,
    },
}

/// An order between two nodes, and its reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// Goes first.
    pub from: NodeId,
    /// Waits for it.
    pub to: NodeId,
    /// How far `from` has to be.
    pub until: Until,
    /// Why.
    pub reason: Reason,
}

/// How far the first object has to be before the second begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Until {
    /// Its apply was answered.
    Applied,
    /// It is a definition and its kinds are in discovery; also with `--wait=false`.
    Served,
    /// It is ready; with `--wait=false` applied is enough.
    Ready,
}

/// Why an edge is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A CustomResourceDefinition and the objects of its kind.
    Definition,
    /// A Namespace and its members.
    Namespace,
    /// What a workload names: ServiceAccount, ConfigMap, Secret, claim, class.
    Reference,
    /// A role and its binding; bindings and the workloads of their accounts.
    Rights,
    /// Quota, limits and network policies of a namespace and the pods they judge.
    Policy,
    /// Service and workload, and the webhook configuration or APIService that calls them.
    Backend,
    /// A webhook configuration, and the objects that it judges.
    Judge,
    /// An APIService, and the objects of its group.
    ApiService,
    /// `argocd.argoproj.io/sync-wave`.
    SyncWave,
    /// `config.kubernetes.io/depends-on`.
    DependsOn,
    /// `kapp.k14s.io/change-rule`.
    ChangeRule,
    /// `helm.sh/hook-weight`.
    HookWeight,
    /// `requires` of a catalogue entry.
    Requires,
}
