//! The order of one command: a graph over the wanted objects of all its add-ons.
//!
//! An edge holds for the whole command: `to` begins when `from` has come as far as [`Until`] says. Objects without a path
//! between them are applied at the same time.

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
mod template;
mod weak;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::desired::Desired;
use annotations::Wishes;
use common::manifest::key::ObjectKey;
pub use cycle::Cycle;
use draft::Draft;
use weak::Weak;

/// The order of one command. It has no cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// In the order in which they begin where no edge decides: rank, then place in the manifest, then key.
    pub nodes: Vec<Node>,
    /// Sorted, without duplicates.
    pub edges: Vec<Edge>,
}

/// One add-on of a command.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Name of its installation, for people.
    pub name: &'a str,
    /// Its wanted objects.
    pub desired: &'a Desired,
    /// Indexes of the parts that have to be installed before this one begins.
    pub requires: &'a [usize],
}

/// An object that holds what another one needs, and is applied without it.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Who has it.
    pub holder: &'a ObjectKey,
    /// Who gets it.
    pub heir: &'a ObjectKey,
}

/// Index into [`Graph::nodes`].
pub type NodeId = usize;

impl Graph {
    /// The order of one command. It is the same for the same objects, in whatever order they were given.
    ///
    /// # Errors
    /// [`Cycle`].
    pub fn new(parts: &[Part<'_>]) -> Result<Self, Cycle> {
        Self::with_holders(parts, &[])
    }

    /// The same, where objects give up with their apply what others need ([`super::holder`]).
    ///
    /// # Errors
    /// [`Cycle`].
    pub fn with_holders(parts: &[Part<'_>], held: &[Held<'_>]) -> Result<Self, Cycle> {
        let mut draft = Draft::new(parts);
        members::definitions(&mut draft);
        members::namespaces(&mut draft);
        references::references(&mut draft);
        rights::rights(&mut draft);
        let objects = draft.objects();
        let wishes: BTreeMap<NodeId, Wishes> = objects
            .filter_map(|(id, item)| Some((id, Wishes::of(item.key, item.object)?)))
            .collect();
        stages::stages(&mut draft, &wishes);
        explicit::depends_on(&mut draft, &wishes);
        explicit::change_rules(&mut draft, &wishes);
        requires::gates(&mut draft);
        let mut weak = Weak::new(&mut draft);
        backends::backends(&mut weak);
        policies::policies(&mut weak);
        judges::api_services(&mut weak);
        judges::judges(&mut weak);
        held_before_heirs(&mut weak, held);
        draft.finish()
    }

    /// What waits for a node.
    #[must_use]
    pub fn leads_to(&self, node: NodeId) -> &[Edge] {
        let start = self.edges.partition_point(|edge| edge.from < node);
        let rest = self.edges.get(start..).unwrap_or_default();
        let length = rest.partition_point(|edge| edge.from == node);
        rest.get(..length).unwrap_or_default()
    }

    /// What a node waits for. It reads every edge: callers that ask for all nodes should count edges once instead.
    pub fn needs(&self, node: NodeId) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.to == node)
    }

    /// The parts that come before `part`, wholly or with some of their objects, and why.
    #[must_use]
    pub fn parts_before(&self, part: usize) -> BTreeMap<usize, BTreeSet<Reason>> {
        let part_of = |node: NodeId| match self.nodes.get(node) {
            Some(Node::Object { part, .. }) => Some(*part),
            Some(Node::Gate { .. }) | None => None,
        };
        let into = self
            .edges
            .iter()
            .filter(|edge| part_of(edge.to) == Some(part));
        let mut before: BTreeMap<usize, BTreeSet<Reason>> = BTreeMap::new();
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

    /// The object of a node, where it is one of the add-on `part`.
    #[must_use]
    pub fn object_of(&self, node: NodeId, part: usize) -> Option<&ObjectKey> {
        match self.nodes.get(node)? {
            Node::Object { part: of, key } if *of == part => Some(key),
            Node::Object { .. } | Node::Gate { .. } => None,
        }
    }

    /// The nodes in levels: no edge leads from one to another of the same level, and every edge leads to a later one.
    #[must_use]
    pub fn levels(&self) -> Vec<Vec<NodeId>> {
        let mut level = vec![0usize; self.nodes.len()];
        for node in cycle::topological(self.nodes.len(), &self.edges) {
            let next = level.get(node).map_or(0, |level| level + 1);
            for edge in self.leads_to(node) {
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

/// What edges lead to and from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Node {
    /// A wanted object. Its key is unique among the objects of a graph, but for a Namespace that several add-ons want.
    Object {
        /// Which add-on of the command.
        part: usize,
        /// The object.
        key: ObjectKey,
    },
    /// Nothing to apply: it is passed when everything before it has come far enough, and fails with it. It orders two groups
    /// of n and m objects with n + m edges.
    Gate {
        /// Its name for people: `wave 1`, `cert-manager is installed`.
        title: String,
    },
}

/// An order between two nodes, and its reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// The node that comes first.
    pub from: NodeId,
    /// The node that waits for it.
    pub to: NodeId,
    /// How far `from` has to be.
    pub until: Until,
    /// Why.
    pub reason: Reason,
}

/// How far the first object has to be before the second begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Until {
    /// Its apply succeeded.
    Applied,
    /// It is a definition and its kinds are in discovery, also where readiness is not waited for.
    Served,
    /// It is ready; where readiness is not waited for, applied is enough.
    Ready,
}

/// The reason of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A CustomResourceDefinition and the objects of its kind.
    Definition,
    /// A Namespace and its members.
    Namespace,
    /// An object that a workload names (ServiceAccount, ConfigMap, Secret, claim, class), and the workload.
    Reference,
    /// A role and its binding; bindings and the workloads of their accounts.
    Rights,
    /// Quota, limits and network policies of a namespace, and the pods that they apply to.
    Policy,
    /// Service and workload, and the webhook configuration or APIService that calls them.
    Backend,
    /// A webhook configuration, and the objects that it matches.
    Judge,
    /// An APIService, and the objects of its group.
    ApiService,
    /// A Service or PriorityClass that gives up a node port or the default, and the one that gets it.
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

impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object { key, .. } => write!(f, "{key}"),
            Self::Gate { title } => f.write_str(title),
        }
    }
}

impl Reason {
    /// The word for plans and drawings.
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

    /// The annotation that asks for this order; `None` where it follows from the objects.
    fn written(self) -> Option<&'static str> {
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

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// What only one object can have is given up before another one asks for it.
fn held_before_heirs(weak: &mut Weak<'_, '_>, held: &[Held<'_>]) {
    for Held { holder, heir } in held {
        if let Some(heir) = weak.draft.find(heir) {
            let holder = weak.draft.find(holder);
            weak.into(holder, heir, Until::Applied, Reason::Holder);
        }
    }
}

#[cfg(test)]
mod tests;
