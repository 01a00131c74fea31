//! The order of one command: a graph over the desired objects of all its add-ons.
//!
//! An edge holds for the whole command: `to` begins when `from` has come as far as [`Until`] says. Objects without a path between them are
//! applied in parallel.

pub mod annotations;
mod backends;
pub mod cycle;
mod draft;
pub mod draw;
mod explicit;
mod judges;
mod members;
mod policies;
mod references;
mod requires;
mod rights;
mod selector;
mod stages;
pub(crate) mod template;
mod weak;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::desired::Desired;
use annotations::OrderAnnotations;
use common::manifest::key::ObjectKey;
pub use cycle::Cycle;
use draft::GraphDraft;
use weak::SoftEdges;

/// The order of one command. It has no cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// In the order in which they begin if no edge decides: rank, then position in the manifest, then key.
    pub nodes: Vec<GraphNode>,
    /// Sorted, without duplicates.
    pub edges: Vec<Edge>,
}

/// One add-on of a command.
#[derive(Clone, Copy, Debug)]
pub struct GraphPart<'a> {
    /// Name of its installation, for display.
    pub name: &'a str,
    /// Its desired objects.
    pub desired: &'a Desired,
    /// Indexes of the parts that have to be installed before it begins.
    pub requires: &'a [usize],
}

/// An object that gives up something, with its own apply, that another object needs.
#[derive(Clone, Copy, Debug)]
pub struct ResourceHandover<'a> {
    /// The object that gives it up.
    pub holder: &'a ObjectKey,
    /// The object that gets it.
    pub receiver: &'a ObjectKey,
}

/// Index into [`Graph::nodes`].
pub type NodeId = usize;

impl Graph {
    /// Builds the order of one command. The result does not depend on the order in which the objects are given.
    ///
    /// # Errors
    /// [`Cycle`].
    pub fn new(parts: &[GraphPart<'_>]) -> Result<Self, Cycle> {
        Self::with_holders(parts, &[])
    }

    /// Like [`Graph::new`], with objects that give up something that others need ([`super::holder`]).
    ///
    /// # Errors
    /// [`Cycle`].
    pub fn with_holders(
        parts: &[GraphPart<'_>],
        held: &[ResourceHandover<'_>],
    ) -> Result<Self, Cycle> {
        let mut draft = GraphDraft::new(parts);
        members::add_definition_edges(&mut draft);
        members::add_namespace_edges(&mut draft);
        references::add_reference_edges(&mut draft);
        rights::add_rights_edges(&mut draft);
        let objects = draft.objects();
        let wishes: BTreeMap<NodeId, OrderAnnotations> = objects
            .filter_map(|(id, item)| {
                Some((id, OrderAnnotations::from_object(item.key, item.object)?))
            })
            .collect();
        stages::add_stage_edges(&mut draft, &wishes);
        explicit::add_depends_on_edges(&mut draft, &wishes);
        explicit::add_change_rule_edges(&mut draft, &wishes);
        requires::add_requires_gates(&mut draft);
        let mut weak = SoftEdges::new(&mut draft);
        backends::add_backend_edges(&mut weak);
        policies::add_policy_edges(&mut weak);
        judges::add_api_service_edges(&mut weak);
        judges::add_webhook_edges(&mut weak);
        add_handover_edges(&mut weak, held);
        draft.finish()
    }

    /// Returns the edges that lead from a node.
    #[must_use]
    pub fn edges_from(&self, node: NodeId) -> &[Edge] {
        let start = self.edges.partition_point(|edge| edge.from < node);
        let rest = self.edges.get(start..).unwrap_or_default();
        let length = rest.partition_point(|edge| edge.from == node);
        rest.get(..length).unwrap_or_default()
    }

    /// Returns the edges that lead to a node. This scans all edges: a caller that visits all nodes should count edges once instead.
    pub fn edges_into(&self, node: NodeId) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.to == node)
    }

    /// Returns the parts that come before `part`, wholly or with some of their objects, and why.
    #[must_use]
    pub fn parts_before(&self, part: usize) -> BTreeMap<usize, BTreeSet<EdgeReason>> {
        let part_of = |node: NodeId| match self.nodes.get(node) {
            Some(GraphNode::Object { part, .. }) => Some(*part),
            Some(GraphNode::Gate { .. }) | None => None,
        };
        let into = self
            .edges
            .iter()
            .filter(|edge| part_of(edge.to) == Some(part));
        let mut before: BTreeMap<usize, BTreeSet<EdgeReason>> = BTreeMap::new();
        let mut gates = BTreeSet::new();
        for edge in into {
            match part_of(edge.from) {
                Some(other) => {
                    before.entry(other).or_default().insert(edge.reason);
                }
                None => {
                    gates.insert(edge.from);
                }
            }
        }
        for edge in self.edges.iter().filter(|edge| gates.contains(&edge.to)) {
            if let Some(other) = part_of(edge.from) {
                before.entry(other).or_default().insert(edge.reason);
            }
        }
        before.remove(&part);
        before
    }

    /// Returns the object of a node, if it belongs to the add-on `part`.
    #[must_use]
    pub fn object_in_part(&self, node: NodeId, part: usize) -> Option<&ObjectKey> {
        match self.nodes.get(node)? {
            GraphNode::Object { part: of, key } if *of == part => Some(key),
            GraphNode::Object { .. } | GraphNode::Gate { .. } => None,
        }
    }

    /// Groups the nodes by level: no edge connects two nodes of a level, and every edge leads to a later level.
    #[must_use]
    pub fn levels(&self) -> Vec<Vec<NodeId>> {
        let mut level = vec![0usize; self.nodes.len()];
        for node in cycle::topological_order(self.nodes.len(), &self.edges) {
            let next = level.get(node).map_or(0, |level| level + 1);
            for edge in self.edges_from(node) {
                if let Some(level) = level.get_mut(edge.to) {
                    *level = next.max(*level);
                }
            }
        }
        let mut levels: BTreeMap<usize, Vec<NodeId>> = BTreeMap::new();
        for (node, level) in level.into_iter().enumerate() {
            levels.entry(level).or_default().push(node);
        }
        levels.into_values().collect()
    }
}

/// A node of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GraphNode {
    /// A desired object. Its key is unique in a graph, except that several add-ons may contain the same Namespace.
    Object {
        /// The index of its add-on in the command.
        part: usize,
        /// The object.
        key: ObjectKey,
    },
    /// A gate, which applies nothing. It is passed when everything before it has come far enough, and fails with it. It orders two groups
    /// of n and m objects with n + m edges.
    Gate {
        /// Its title, for display: `wave 1`, `cert-manager is installed`.
        title: String,
    },
}

/// An order between two nodes, and its reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// The node that comes first.
    pub from: NodeId,
    /// The node that waits for `from`.
    pub to: NodeId,
    /// How far `from` has to come.
    pub until: Until,
    /// Why.
    pub reason: EdgeReason,
}

/// How far the first object has to come before the second begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Until {
    /// Its apply succeeded.
    Applied,
    /// It is a CRD whose kinds are in discovery. This holds even if the command does not wait for readiness.
    Served,
    /// It is ready, or applied, if the command does not wait for readiness.
    Ready,
}

/// The reason of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeReason {
    /// A CustomResourceDefinition and the objects of its kind.
    Definition,
    /// A Namespace and its members.
    Namespace,
    /// An object that a workload names (ServiceAccount, ConfigMap, Secret, claim, class), and the workload.
    Reference,
    /// A role and its binding; bindings and the workloads of their accounts.
    Rights,
    /// Quotas, limits and network policies of a namespace, and the pods that they apply to.
    Policy,
    /// A Service and its workload, and the webhook configuration or APIService that calls them.
    Backend,
    /// A webhook configuration and the objects that it matches.
    Judge,
    /// An APIService and the objects of its group.
    ApiService,
    /// A Service or PriorityClass that gives up a node port or the default, and the object that gets it.
    Holder,
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

impl std::fmt::Display for GraphNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object { key, .. } => write!(f, "{key}"),
            Self::Gate { title } => f.write_str(title),
        }
    }
}

impl EdgeReason {
    /// Returns the name of the reason in plans and drawings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Namespace => "namespace",
            Self::Reference => "reference",
            Self::Rights => "rights",
            Self::Policy => "policy",
            Self::Backend => "backend",
            Self::Judge => "judge",
            Self::ApiService => "api-service",
            Self::Holder => "holder",
            Self::SyncWave => "sync-wave",
            Self::DependsOn => "depends-on",
            Self::ChangeRule => "change-rule",
            Self::HookWeight => "hook-weight",
            Self::Requires => "requires",
        }
    }

    /// Returns the annotation or field that requests this order; `None` if the order follows from the objects.
    fn source(self) -> Option<&'static str> {
        match self {
            Self::SyncWave => Some("annotation argocd.argoproj.io/sync-wave"),
            Self::DependsOn => Some("annotation config.kubernetes.io/depends-on"),
            Self::ChangeRule => Some("annotation kapp.k14s.io/change-rule"),
            Self::HookWeight => Some("annotations helm.sh/hook and helm.sh/hook-weight"),
            Self::Requires => Some("requires"),
            _ => None,
        }
    }
}

impl std::fmt::Display for EdgeReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// Adds edges from objects that give up something that only one object can have to the objects that get it.
fn add_handover_edges(weak: &mut SoftEdges<'_, '_>, held: &[ResourceHandover<'_>]) {
    for ResourceHandover {
        holder,
        receiver: heir,
    } in held
    {
        if let Some(heir) = weak.draft.find(heir) {
            let holder = weak.draft.find(holder);
            weak.add_into(holder, heir, Until::Applied, EdgeReason::Holder);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
