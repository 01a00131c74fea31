//! Soft edges: they improve the order, and are dropped if they would close a cycle.

use std::collections::HashSet;

use super::draft::GraphDraft;
use super::{EdgeReason, NodeId, Until};

/// Adds soft edges to a draft that has all its hard edges. No edge that it adds closes a cycle.
#[derive(Debug)]
pub(super) struct SoftEdges<'d, 'a> {
    /// The draft.
    pub draft: &'d mut GraphDraft<'a>,
    /// Neighbours of each node, computed on first use because most commands do not need them.
    neighbours: Option<NodeNeighbours>,
}

#[derive(Debug, Default)]
struct NodeNeighbours {
    before: Vec<Vec<NodeId>>,
    after: Vec<Vec<NodeId>>,
}

impl<'d, 'a> SoftEdges<'d, 'a> {
    /// Starts with the hard edges of `draft`.
    pub fn new(draft: &'d mut GraphDraft<'a>) -> Self {
        Self {
            draft,
            neighbours: None,
        }
    }

    /// Adds edges from each of `from` to `to`, except from nodes that wait for `to`.
    pub fn add_into(
        &mut self,
        from: impl IntoIterator<Item = NodeId>,
        to: NodeId,
        until: Until,
        reason: EdgeReason,
    ) {
        let mut from = from.into_iter().peekable();
        if from.peek().is_none() {
            return;
        }
        let after = reachable_from(&self.neighbours().after, to);
        for from in from.filter(|from| !after.contains(from)) {
            self.add_edge(from, to, until, reason);
        }
    }

    /// Adds edges from `from` to each of `to`, except to nodes that `from` waits for.
    pub fn add_from(
        &mut self,
        from: NodeId,
        to: impl IntoIterator<Item = NodeId>,
        until: Until,
        reason: EdgeReason,
    ) {
        let mut to = to.into_iter().peekable();
        if to.peek().is_none() {
            return;
        }
        let before = reachable_from(&self.neighbours().before, from);
        for to in to.filter(|to| !before.contains(to)) {
            self.add_edge(from, to, until, reason);
        }
    }

    /// Orders each of `from` before each of `to`: over one gate if that saves edges and closes no cycle, else edge by edge.
    pub fn connect(
        &mut self,
        from: &[NodeId],
        to: &[NodeId],
        until: Until,
        reason: EdgeReason,
        title: impl FnOnce() -> String,
    ) {
        if from.is_empty() || to.is_empty() {
            return;
        }
        let before = &self.neighbours().before;
        let closes = from.iter().any(|from| {
            let before = reachable_from(before, *from);
            to.iter().any(|to| before.contains(to))
        });
        if closes {
            for from in from {
                self.add_from(*from, to.iter().copied(), until, reason);
            }
            return;
        }
        let known = self.draft.edges().len();
        self.draft.connect(from, to, until, reason, title);
        let added = self.draft.edges().get(known..).unwrap_or_default();
        let added: Vec<_> = added.iter().map(|edge| (edge.from, edge.to)).collect();
        for (from, to) in added {
            self.neighbours().add(from, to);
        }
    }

    fn add_edge(&mut self, from: NodeId, to: NodeId, until: Until, reason: EdgeReason) {
        self.draft.add_edge(from, to, until, reason);
        self.neighbours().add(from, to);
    }

    fn neighbours(&mut self) -> &mut NodeNeighbours {
        let draft = &*self.draft;
        self.neighbours.get_or_insert_with(|| {
            let mut neighbours = NodeNeighbours::default();
            for edge in draft.edges() {
                neighbours.add(edge.from, edge.to);
            }
            neighbours
        })
    }
}

impl NodeNeighbours {
    fn add(&mut self, from: NodeId, to: NodeId) {
        let length = from.max(to) + 1;
        for side in [&mut self.before, &mut self.after] {
            if side.len() < length {
                side.resize_with(length, Vec::new);
            }
        }
        if let Some(before) = self.before.get_mut(to) {
            before.push(from);
        }
        if let Some(after) = self.after.get_mut(from) {
            after.push(to);
        }
    }
}

/// Returns a node and all nodes that can be reached from it.
fn reachable_from(neighbours: &[Vec<NodeId>], start: NodeId) -> HashSet<NodeId> {
    let mut reached = HashSet::from([start]);
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        for next in neighbours.get(node).into_iter().flatten() {
            if reached.insert(*next) {
                open.push(*next);
            }
        }
    }
    reached
}
