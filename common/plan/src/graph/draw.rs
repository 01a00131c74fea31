//! Drawings of the graph for Graphviz and Mermaid.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::cycle::topological_order;
use super::{Edge, Graph, GraphNode, NodeId};

/// The maximum number of nodes for which redundant edges are left out. Finding them costs nodes × edges.
const MAX_REDUCED: usize = 2000;

/// Draws the graph in Graphviz' DOT: a cluster per add-on, gates as diamonds, edges labelled with their reason. `names` are the names of
/// the parts.
#[must_use]
pub fn to_dot(graph: &Graph, names: &[&str]) -> String {
    let mut dot = "digraph order {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for (part, name) in names.iter().enumerate() {
        let mut label = String::new();
        quote_dot(&mut label, name);
        let _ = writeln!(dot, "  subgraph cluster_{part} {{\n    label={label};");
        for (id, node) in graph.nodes.iter().enumerate() {
            if matches!(node, GraphNode::Object { part: of, .. } if *of == part) {
                let mut label = String::new();
                quote_dot(&mut label, &node.to_string());
                let _ = writeln!(dot, "    n{id} [label={label}];");
            }
        }
        dot.push_str("  }\n");
    }
    for (id, node) in graph.nodes.iter().enumerate() {
        if let GraphNode::Gate { title } = node {
            let mut label = String::new();
            quote_dot(&mut label, title);
            let _ = writeln!(dot, "  n{id} [label={label}, shape=diamond];");
        }
    }
    for edge in edges_to_draw(graph) {
        let Edge {
            from, to, reason, ..
        } = edge;
        let _ = writeln!(dot, "  n{from} -> n{to} [label=\"{reason}\"];");
    }
    dot.push_str("}\n");
    dot
}

/// Draws the graph as a Mermaid flowchart, with the same shapes.
#[must_use]
pub fn to_mermaid(graph: &Graph, names: &[&str]) -> String {
    let mut chart = "flowchart LR\n".to_owned();
    for (part, name) in names.iter().enumerate() {
        let _ = writeln!(chart, "  subgraph p{part}[{}]", quote_mermaid(name));
        for (id, node) in graph.nodes.iter().enumerate() {
            if matches!(node, GraphNode::Object { part: of, .. } if *of == part) {
                let _ = writeln!(chart, "    n{id}[{}]", quote_mermaid(&node.to_string()));
            }
        }
        chart.push_str("  end\n");
    }
    for (id, node) in graph.nodes.iter().enumerate() {
        if let GraphNode::Gate { title } = node {
            let _ = writeln!(chart, "  n{id}{{{}}}", quote_mermaid(title));
        }
    }
    for edge in edges_to_draw(graph) {
        let Edge {
            from, to, reason, ..
        } = edge;
        let _ = writeln!(chart, "  n{from} -->|{reason}| n{to}");
    }
    chart
}

/// Appends a quoted DOT string, in which only the quote and the backslash are special.
fn quote_dot(into: &mut String, text: &str) {
    into.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            into.push('\\');
        }
        into.push(if c.is_control() { ' ' } else { c });
    }
    into.push('"');
}

/// Quotes a text for Mermaid, which has no escapes but `#NUMBER;`, and interprets Markdown and HTML.
fn quote_mermaid(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            c if c.is_control() => quoted.push(' '),
            c if c.is_ascii_alphanumeric() || " /.:-_,()".contains(c) || !c.is_ascii() => {
                quoted.push(c);
            }
            c => {
                let _ = write!(quoted, "#{};", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Returns the edges to draw: one between two nodes, and none that a longer path implies.
fn edges_to_draw(graph: &Graph) -> Vec<&Edge> {
    let mut edges: Vec<&Edge> = graph.edges.iter().collect();
    edges.dedup_by_key(|edge| (edge.from, edge.to));
    if graph.nodes.len() > MAX_REDUCED {
        return edges;
    }
    let order = topological_order(graph.nodes.len(), &graph.edges);
    let mut place = vec![0usize; graph.nodes.len()];
    for (at, node) in order.iter().enumerate() {
        if let Some(place) = place.get_mut(*node) {
            *place = at;
        }
    }
    let place = |node: NodeId| place.get(node).copied().unwrap_or_default();
    let mut redundant: HashSet<(NodeId, NodeId)> = HashSet::new();
    for node in 0..graph.nodes.len() {
        // Visit the nearest nodes first: nodes that they reach need no edge of their own.
        let mut next: Vec<NodeId> = graph.edges_from(node).iter().map(|edge| edge.to).collect();
        next.sort_by_key(|node| place(*node));
        next.dedup();
        let last = next.last().map_or(0, |node| place(*node));
        let mut reached: HashSet<NodeId> = HashSet::new();
        for to in next {
            if reached.contains(&to) {
                redundant.insert((node, to));
                continue;
            }
            let mut open = vec![to];
            while let Some(at) = open.pop() {
                for edge in graph.edges_from(at) {
                    if place(edge.to) <= last && reached.insert(edge.to) {
                        open.push(edge.to);
                    }
                }
            }
        }
    }
    edges.retain(|edge| !redundant.contains(&(edge.from, edge.to)));
    edges
}

#[cfg(test)]
mod tests {
    use super::super::{EdgeReason, Until};
    use super::*;
    use common::manifest::key::ObjectKey;

    fn graph() -> Graph {
        let object = |part, name: &str| GraphNode::Object {
            part,
            key: ObjectKey {
                kind: "Namespace".to_owned(),
                name: name.to_owned(),
                ..ObjectKey::default()
            },
        };
        let edge = |from, to, reason| Edge {
            from,
            to,
            until: Until::Ready,
            reason,
        };
        Graph {
            nodes: vec![
                object(0, "a"),
                object(0, "odd \"\\ [x]#"),
                object(1, "c"),
                GraphNode::Gate {
                    title: "one is installed".to_owned(),
                },
            ],
            edges: vec![
                edge(0, 1, EdgeReason::DependsOn),
                edge(0, 3, EdgeReason::Requires),
                edge(1, 3, EdgeReason::Requires),
                edge(3, 2, EdgeReason::Requires),
            ],
        }
    }

    #[test]
    fn dot() {
        assert_eq!(
            to_dot(&graph(), &["one", "two"]),
            r#"digraph order {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_0 {
    label="one";
    n0 [label="Namespace a"];
    n1 [label="Namespace odd \"\\ [x]#"];
  }
  subgraph cluster_1 {
    label="two";
    n2 [label="Namespace c"];
  }
  n3 [label="one is installed", shape=diamond];
  n0 -> n1 [label="depends-on"];
  n1 -> n3 [label="requires"];
  n3 -> n2 [label="requires"];
}
"#
        );
    }

    #[test]
    fn mermaid() {
        assert_eq!(
            to_mermaid(&graph(), &["one", "two"]),
            r#"flowchart LR
  subgraph p0["one"]
    n0["Namespace a"]
    n1["Namespace odd #34;#92; #91;x#93;#35;"]
  end
  subgraph p1["two"]
    n2["Namespace c"]
  end
  n3{"one is installed"}
  n0 -->|depends-on| n1
  n1 -->|requires| n3
  n3 -->|requires| n2
"#
        );
    }
}
