//! Cycles of the graph, reported edge by edge.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;

use super::{Edge, EdgeReason, Graph, GraphNode, NodeId};

/// One shortest cycle of objects that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The nodes of the cycle, each with the reason why the next one waits for it. The first node waits for the last.
    pub steps: Vec<(GraphNode, EdgeReason)>,
}

impl Cycle {
    /// Returns a shortest cycle of a graph that has cycles; of several, the first in the order of nodes.
    pub(super) fn shortest(graph: &Graph) -> Self {
        let count = graph.nodes.len();
        let mut open = vec![true; count];
        for node in topological_order(count, &graph.edges) {
            if let Some(open) = open.get_mut(node) {
                *open = false;
            }
        }
        let mut best: Vec<Edge> = Vec::new();
        for start in (0..count).filter(|node| open.get(*node) == Some(&true)) {
            let limit = match best.len() {
                0 => usize::MAX,
                1 | 2 => break,
                length => length - 1,
            };
            if let Some(path) = shortest_cycle_from(start, graph, limit) {
                best = path;
            }
        }
        let steps = best.iter().filter_map(|edge| {
            let node = graph.nodes.get(edge.from)?;
            Some((node.clone(), edge.reason))
        });
        Self {
            steps: steps.collect(),
        }
    }
}

impl Cycle {
    /// Describes what to change: the first edge of the cycle that a manifest or catalogue requests, and the objects around it.
    fn describe_fix(&self) -> Option<String> {
        let mut reasons = self.steps.iter().map(|(_, reason)| *reason);
        let (reason, written) = reasons.find_map(|reason| Some((reason, reason.source()?)))?;
        if reason == EdgeReason::Requires {
            return Some("change requires in the catalogue, or install what is needed first as an add-on of its own".to_owned());
        }
        let after = self.steps.iter().cycle().skip(1);
        let mut around = Vec::new();
        for ((from, why), (to, _)) in self.steps.iter().zip(after) {
            for node in [from, to] {
                let named = matches!(node, GraphNode::Object { .. }) && *why == reason;
                if named && !around.contains(&node.to_string()) {
                    around.push(node.to_string());
                }
            }
        }
        Some(format!("change {written} of {}", around.join(" or ")))
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these wait for each other: ")?;
        for (node, reason) in &self.steps {
            write!(f, "{node} → ({reason}) → ")?;
        }
        if let Some((first, _)) = self.steps.first() {
            write!(f, "{first}")?;
        }
        match self.describe_fix() {
            Some(way_out) => write!(f, "; {way_out}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Cycle {}

/// Returns the shortest path from a node back to itself, of at most `limit` edges.
fn shortest_cycle_from(start: NodeId, graph: &Graph, limit: usize) -> Option<Vec<Edge>> {
    let mut reached: Vec<Option<&Edge>> = vec![None; graph.nodes.len()];
    let mut queue = VecDeque::from([(start, 0)]);
    while let Some((node, length)) = queue.pop_front() {
        if length >= limit {
            return None;
        }
        for edge in graph.edges_from(node) {
            if edge.to == start {
                let mut path = vec![edge.clone()];
                let mut at = node;
                while at != start {
                    let edge = (*reached.get(at)?)?;
                    path.push(edge.clone());
                    at = edge.from;
                }
                path.reverse();
                return Some(path);
            }
            let to = reached.get_mut(edge.to)?;
            if to.is_none() {
                *to = Some(edge);
                queue.push_back((edge.to, length + 1));
            }
        }
    }
    None
}

/// Sorts the nodes so that every edge leads forward, the smallest first if no edge decides. Nodes of cycles, and nodes that wait for them,
/// are missing. `edges` have to be sorted.
pub(super) fn topological_order(count: usize, edges: &[Edge]) -> Vec<NodeId> {
    let mut waits = vec![0usize; count];
    for edge in edges {
        if let Some(waits) = waits.get_mut(edge.to) {
            *waits += 1;
        }
    }
    let free = waits.iter().enumerate().filter(|(_, waits)| **waits == 0);
    let mut heap: BinaryHeap<Reverse<NodeId>> = free.map(|(node, _)| Reverse(node)).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse(node)) = heap.pop() {
        order.push(node);
        let start = edges.partition_point(|edge| edge.from < node);
        for edge in edges
            .iter()
            .skip(start)
            .take_while(|edge| edge.from == node)
        {
            if let Some(waits) = waits.get_mut(edge.to) {
                *waits -= 1;
                if *waits == 0 {
                    heap.push(Reverse(edge.to));
                }
            }
        }
    }
    order
}
