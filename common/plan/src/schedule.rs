//! The progress through a [`Graph`]: which objects may begin now. It has no requests and no clock; the engine reports what was applied,
//! what became ready and what failed.

use std::collections::BTreeSet;

use super::graph::{Edge, EdgeReason, Graph, GraphNode, NodeId, Until};

/// The progress through a graph. Every object ends once: ready, failed, or skipped because something before it failed.
#[derive(Debug)]
pub struct Schedule<'a> {
    graph: &'a Graph,
    nodes: Vec<NodeProgress>,
    /// Whether to wait for readiness. Otherwise applied counts as ready.
    waits: bool,
    parts: Vec<PartProgress>,
}

/// The progress of one node.
#[derive(Clone, Debug)]
struct NodeProgress {
    state: NodeState,
    /// The number of edges into it that are not yet satisfied.
    unmet: usize,
    /// Whether something is sent for it or for a node after it. Otherwise its readiness does not matter.
    matters: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeState {
    Waiting,
    Started,
    Applied,
    Ended,
}

/// The progress of one add-on.
#[derive(Clone, Debug, Default)]
struct PartProgress {
    is_open: bool,
    /// Objects that may begin as soon as the part is open.
    free: BTreeSet<NodeId>,
    /// The number of objects that have not ended.
    unfinished: usize,
}

/// An object that is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedNode {
    /// The object.
    pub node: NodeId,
    /// The object that failed.
    pub cause: NodeId,
    /// The reason why it waits for the failed object, or for a node in between.
    pub reason: EdgeReason,
}

/// The objects that are affected by giving up a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenUpPart {
    /// Its objects that were applied but not seen ready.
    pub unready: Vec<NodeId>,
    /// Its objects that were not applied.
    pub unapplied: Vec<NodeId>,
    /// Objects of other parts that wait for them.
    pub skipped: Vec<SkippedNode>,
}

impl<'a> Schedule<'a> {
    /// Starts a graph of `parts` add-ons, none of them open. `is_step` tells whether something is sent for a node, `waits` whether
    /// [`Until::Ready`] waits for readiness.
    pub fn new(
        graph: &'a Graph,
        parts: usize,
        waits: bool,
        is_step: impl Fn(NodeId) -> bool,
    ) -> Self {
        let matters = find_nodes_before_steps(graph, is_step);
        let nodes = matters.into_iter().map(|matters| NodeProgress {
            state: NodeState::Waiting,
            unmet: 0,
            matters,
        });
        let mut schedule = Self {
            graph,
            nodes: nodes.collect(),
            waits,
            parts: vec![PartProgress::default(); parts],
        };
        for edge in &graph.edges {
            if let Some(to) = schedule.nodes.get_mut(edge.to) {
                to.unmet += 1;
            }
        }
        for (node, object) in graph.nodes.iter().enumerate() {
            if let GraphNode::Object { part, .. } = object
                && let Some(part) = schedule.parts.get_mut(*part)
            {
                part.unfinished += 1;
            }
            if schedule.nodes.get(node).is_some_and(|node| node.unmet == 0) {
                schedule.release_node(node);
            }
        }
        schedule
    }

    /// Allows the objects of a part to begin.
    pub fn open(&mut self, part: usize) {
        if let Some(part) = self.parts.get_mut(part) {
            part.is_open = true;
        }
    }

    /// Whether every object of a part has ended.
    #[must_use]
    pub fn is_over(&self, part: usize) -> bool {
        self.parts.get(part).is_none_or(|part| part.unfinished == 0)
    }

    /// Begins the next object that may begin, in node order.
    pub fn begin(&mut self) -> Option<NodeId> {
        let open = self.parts.iter_mut().filter(|part| part.is_open);
        let next = open.min_by_key(|part| part.free.first().copied().unwrap_or(NodeId::MAX))?;
        let node = next.free.pop_first()?;
        self.set_state(node, NodeState::Started);
        Some(node)
    }

    /// Records that an object was applied, or that there was nothing to send. Returns how far to watch it before others can begin; `None`
    /// if nothing waits for it, so it has ended.
    pub fn mark_applied(&mut self, node: NodeId) -> Option<Until> {
        self.set_state(node, NodeState::Applied);
        let awaited = self.graph.edges_from(node).iter().filter(|edge| {
            let target = self.nodes.get(edge.to);
            !self.is_met_by_apply(edge) && target.is_some_and(|target| target.matters)
        });
        let awaited = awaited.map(|edge| edge.until).max();
        self.satisfy_edges(node, |schedule, edge| schedule.is_met_by_apply(edge));
        if awaited.is_none() {
            self.mark_ready(node);
        }
        awaited
    }

    /// Records that an applied object is ready.
    pub fn mark_ready(&mut self, node: NodeId) {
        if self.state(node) == Some(NodeState::Applied) {
            self.end(node);
            self.satisfy_edges(node, |schedule, edge| !schedule.is_met_by_apply(edge));
        }
    }

    /// Records that an object failed or did not become ready. Skips everything that still waits for it.
    pub fn mark_failed(&mut self, node: NodeId) -> Vec<SkippedNode> {
        let was_applied = self.state(node) == Some(NodeState::Applied);
        self.end(node);
        self.skip_behind(node, was_applied)
    }

    /// Ends the unfinished nodes of a part, and skips what waits for them in other parts.
    pub fn give_up(&mut self, part: usize) -> GivenUpPart {
        let of_part = |object: &GraphNode| matches!(object, GraphNode::Object { part: of, .. } if *of == part);
        let nodes = self.graph.nodes.iter().enumerate();
        let nodes = nodes.filter(|(_, object)| of_part(object));
        let mut given_up = GivenUpPart::default();
        for (node, _) in nodes {
            match self.state(node) {
                Some(NodeState::Ended) | None => {}
                Some(NodeState::Applied) => given_up.unready.push(node),
                Some(NodeState::Waiting | NodeState::Started) => given_up.unapplied.push(node),
            }
        }
        for node in given_up.unready.iter().chain(&given_up.unapplied) {
            self.end(*node);
        }
        for node in &given_up.unready {
            let skipped = self.skip_behind(*node, true);
            given_up.skipped.extend(skipped);
        }
        for node in &given_up.unapplied {
            let skipped = self.skip_behind(*node, false);
            given_up.skipped.extend(skipped);
        }
        given_up
    }

    /// Skips everything that still waits, directly or not, for an object that has ended.
    fn skip_behind(&mut self, node: NodeId, was_applied: bool) -> Vec<SkippedNode> {
        let mut skipped = Vec::new();
        let mut todo: Vec<NodeId> = vec![node];
        while let Some(from) = todo.pop() {
            for edge in self.graph.edges_from(from) {
                let is_met = from == node && was_applied && self.is_met_by_apply(edge);
                if is_met || self.state(edge.to) != Some(NodeState::Waiting) {
                    continue;
                }
                self.end(edge.to);
                todo.push(edge.to);
                if let Some(GraphNode::Object { .. }) = self.graph.nodes.get(edge.to) {
                    skipped.push(SkippedNode {
                        node: edge.to,
                        cause: node,
                        reason: edge.reason,
                    });
                }
            }
        }
        skipped
    }

    fn state(&self, node: NodeId) -> Option<NodeState> {
        self.nodes.get(node).map(|node| node.state)
    }

    fn set_state(&mut self, node: NodeId, state: NodeState) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.state = state;
        }
    }

    fn end(&mut self, node: NodeId) {
        if self.state(node) == Some(NodeState::Ended) {
            return;
        }
        self.set_state(node, NodeState::Ended);
        if let Some(GraphNode::Object { part, .. }) = self.graph.nodes.get(node)
            && let Some(part) = self.parts.get_mut(*part)
        {
            part.unfinished -= 1;
            part.free.remove(&node);
        }
    }

    fn is_met_by_apply(&self, edge: &Edge) -> bool {
        match edge.until {
            Until::Applied => true,
            Until::Served => false,
            Until::Ready => !self.waits,
        }
    }

    /// Marks edges from a node as satisfied, and releases the nodes that wait for nothing else.
    fn satisfy_edges(&mut self, node: NodeId, is_met: impl Fn(&Self, &Edge) -> bool) {
        let met: Vec<NodeId> = self
            .graph
            .edges_from(node)
            .iter()
            .filter(|edge| is_met(self, edge))
            .map(|edge| edge.to)
            .collect();
        for to in met {
            let Some(target) = self.nodes.get_mut(to) else {
                continue;
            };
            target.unmet = target.unmet.saturating_sub(1);
            if target.unmet == 0 && target.state == NodeState::Waiting {
                self.release_node(to);
            }
        }
    }

    /// Handles a node that waits for nothing: an object may begin, a gate is passed.
    fn release_node(&mut self, node: NodeId) {
        match self.graph.nodes.get(node) {
            Some(GraphNode::Object { part, .. }) => {
                if let Some(part) = self.parts.get_mut(*part) {
                    part.free.insert(node);
                }
            }
            Some(GraphNode::Gate { .. }) => {
                self.end(node);
                self.satisfy_edges(node, |_, _| true);
            }
            None => {}
        }
    }
}

/// Marks the nodes that something is sent for, and all nodes before them.
fn find_nodes_before_steps(graph: &Graph, is_step: impl Fn(NodeId) -> bool) -> Vec<bool> {
    let mut matters: Vec<bool> = (0..graph.nodes.len()).map(is_step).collect();
    let mut entering: Vec<&Edge> = graph.edges.iter().collect();
    entering.sort_by_key(|edge| edge.to);
    let steps = matters.iter().enumerate();
    let mut todo: Vec<NodeId> = steps
        .filter(|(_, step)| **step)
        .map(|(node, _)| node)
        .collect();
    while let Some(node) = todo.pop() {
        let first = entering.partition_point(|edge| edge.to < node);
        let into = entering.iter().skip(first);
        for edge in into.take_while(|edge| edge.to == node) {
            if let Some(before) = matters.get_mut(edge.from)
                && !*before
            {
                *before = true;
                todo.push(edge.from);
            }
        }
    }
    matters
}

#[cfg(test)]
#[path = "schedule/tests.rs"]
mod tests;
