//! A graph under construction: its nodes in order, indexed by key, kind and namespace, and its edges so far.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::cycle::{Cycle, topological_order};
use super::{Edge, EdgeReason, Graph, GraphNode, GraphPart, NodeId, Until};
use crate::Target;
use crate::order::ObjectRank;
use common::manifest::FilePosition;
use common::manifest::key::ObjectKey;

/// A desired object that becomes a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct DraftObject<'a> {
    /// The index of its add-on.
    pub part: usize,
    /// Its key.
    pub key: &'a ObjectKey,
    /// Its address for requests.
    pub target: &'a Target,
    /// The object as it is sent.
    pub object: &'a Value,
    /// Its position in the manifests.
    pub place: &'a FilePosition,
    /// Its rank.
    pub rank: ObjectRank,
    /// Whether it is a CRD from `crds/` of a chart.
    pub is_of_crds: bool,
}

/// The nodes and edges of a graph under construction. Gates come after the objects.
#[derive(Debug)]
pub(super) struct GraphDraft<'a> {
    /// The add-ons.
    pub parts: &'a [GraphPart<'a>],
    /// The objects, in node order.
    pub items: Vec<DraftObject<'a>>,
    /// The nodes by group and kind.
    kinds: BTreeMap<&'a str, BTreeMap<&'a str, Vec<NodeId>>>,
    keys: HashMap<&'a ObjectKey, NodeId>,
    gates: Vec<String>,
    edges: Vec<Edge>,
}

impl<'a> GraphDraft<'a> {
    /// Creates the nodes of all objects, without edges.
    pub fn new(parts: &'a [GraphPart<'a>]) -> Self {
        let of = |(part, given): (usize, &'a GraphPart<'a>)| {
            let objects = given.desired.objects.iter();
            objects.map(move |(key, desired)| DraftObject {
                part,
                key,
                target: &desired.target,
                object: &desired.object,
                place: &desired.place,
                rank: ObjectRank::from_object(key, Some(&desired.object)),
                is_of_crds: desired.is_shared,
            })
        };
        let mut items: Vec<DraftObject<'a>> = parts.iter().enumerate().flat_map(of).collect();
        let name = |item: &DraftObject<'a>| parts.get(item.part).map(|part| part.name);
        items.sort_by(|a, b| {
            (a.rank, a.place, a.key, name(a)).cmp(&(b.rank, b.place, b.key, name(b)))
        });
        let mut kinds: BTreeMap<&str, BTreeMap<&str, Vec<NodeId>>> = BTreeMap::new();
        let mut keys = HashMap::with_capacity(items.len());
        for (id, item) in items.iter().enumerate() {
            let group = kinds.entry(&item.key.group).or_default();
            group.entry(&item.key.kind).or_default().push(id);
            keys.entry(item.key).or_insert(id);
        }
        Self {
            parts,
            items,
            kinds,
            keys,
            gates: Vec::new(),
            edges: Vec::new(),
        }
    }

    /// Returns the objects of a kind, in node order.
    pub fn objects_of_kind(
        &self,
        group: &str,
        kind: &str,
    ) -> impl Iterator<Item = (NodeId, DraftObject<'a>)> {
        let ids = self.kinds.get(group).and_then(|kinds| kinds.get(kind));
        ids.into_iter()
            .flatten()
            .filter_map(|id| Some((*id, *self.items.get(*id)?)))
    }

    /// Returns the objects of a group, kind by kind.
    pub fn objects_of_group(&self, group: &str) -> impl Iterator<Item = (NodeId, DraftObject<'a>)> {
        let kinds = self.kinds.get(group).into_iter().flatten();
        kinds
            .flat_map(|(_, ids)| ids)
            .filter_map(|id| Some((*id, *self.items.get(*id)?)))
    }

    /// Finds an object by kind, namespace and name.
    pub fn find_named(
        &self,
        group: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<NodeId> {
        self.find(&ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        })
    }

    /// Finds the object of a key. If several add-ons contain the same Namespace, returns the first.
    pub fn find(&self, key: &ObjectKey) -> Option<NodeId> {
        self.keys.get(key).copied()
    }

    /// Returns every object with its node.
    pub fn objects(&self) -> impl Iterator<Item = (NodeId, DraftObject<'a>)> {
        self.items.iter().copied().enumerate()
    }

    /// Returns the parts sorted by name, independent of their order in the command.
    pub fn parts_by_name(&self) -> Vec<usize> {
        let mut parts: Vec<usize> = (0..self.parts.len()).collect();
        parts.sort_by_key(|part| self.parts.get(*part).map(|part| part.name));
        parts
    }

    /// Adds a gate.
    pub fn add_gate(&mut self, title: String) -> NodeId {
        self.gates.push(title);
        self.items.len() + self.gates.len() - 1
    }

    /// Adds an edge, except from a node to itself.
    pub fn add_edge(&mut self, from: NodeId, to: NodeId, until: Until, reason: EdgeReason) {
        if from != to {
            self.edges.push(Edge {
                from,
                to,
                until,
                reason,
            });
        }
    }

    /// Orders every node of `from` before every node of `to`, over a gate if that saves edges. No node may be in both lists.
    pub fn connect(
        &mut self,
        from: &[NodeId],
        to: &[NodeId],
        until: Until,
        reason: EdgeReason,
        title: impl FnOnce() -> String,
    ) {
        if from.len().saturating_mul(to.len()) <= from.len() + to.len() {
            for from in from {
                for to in to {
                    self.add_edge(*from, *to, until, reason);
                }
            }
            return;
        }
        let gate = self.add_gate(title());
        for from in from {
            self.add_edge(*from, gate, until, reason);
        }
        for to in to {
            self.add_edge(gate, *to, until, reason);
        }
    }

    /// Returns the number of nodes.
    pub fn count(&self) -> usize {
        self.items.len() + self.gates.len()
    }

    /// Returns the edges so far.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the graph, or a cycle if it has one.
    pub fn finish(mut self) -> Result<Graph, Cycle> {
        self.sort_edges();
        let objects = self.items.iter().map(|item| GraphNode::Object {
            part: item.part,
            key: item.key.clone(),
        });
        let gates = self
            .gates
            .into_iter()
            .map(|title| GraphNode::Gate { title });
        let graph = Graph {
            nodes: objects.chain(gates).collect(),
            edges: self.edges,
        };
        if topological_order(graph.nodes.len(), &graph.edges).len() == graph.nodes.len() {
            Ok(graph)
        } else {
            Err(Cycle::shortest(&graph))
        }
    }

    /// Sorts the edges, and removes edges that another one between the same nodes implies: `Ready` implies `Applied`, but not `Served`,
    /// which holds even if the command does not wait for readiness.
    pub fn sort_edges(&mut self) {
        self.edges.sort();
        let strong: HashSet<(NodeId, NodeId)> = self
            .edges
            .iter()
            .filter(|edge| edge.until != Until::Applied)
            .map(|edge| (edge.from, edge.to))
            .collect();
        self.edges
            .retain(|edge| edge.until != Until::Applied || !strong.contains(&(edge.from, edge.to)));
        self.edges
            .dedup_by_key(|edge| (edge.from, edge.to, edge.until));
    }
}
