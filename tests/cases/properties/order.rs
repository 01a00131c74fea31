//! The laws of the order: every order that is asked for is kept, nothing else decides it, and a cycle is a real one.

mod set;

use std::collections::BTreeSet;

use addons_plan::desired::Desired;
use addons_plan::graph::{Cycle, EdgeReason, Graph, GraphNode, GraphPart, NodeId};
use addons_plan::order::ObjectRank;
use common::manifest::key::ObjectKey;
use proptest::prelude::*;
use serde_json::Value;

use super::law;
use set::{PARTS, Spec, desired, sets};

fn graph(desired: &[Desired], requires: &[Vec<usize>]) -> Result<Graph, Cycle> {
    let parts: Vec<GraphPart<'_>> = (0..desired.len())
        .map(|part| GraphPart {
            name: PARTS[part],
            desired: &desired[part],
            requires: &requires[part],
        })
        .collect();
    Graph::new(&parts)
}

/// Node → everything that comes after it.
fn after(graph: &Graph, node: NodeId) -> BTreeSet<NodeId> {
    let mut after = BTreeSet::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        for edge in graph.edges.iter().filter(|edge| edge.from == node) {
            if after.insert(edge.to) {
                open.push(edge.to);
            }
        }
    }
    after
}

/// The wanted object of a node.
fn object<'d>(
    node: &GraphNode,
    desired: &'d [Desired],
) -> Option<(usize, &'d ObjectKey, &'d Value)> {
    match node {
        GraphNode::Object { part, key } => {
            let (key, object) = desired[*part].objects.get_key_value(key)?;
            Some((*part, key, &*object.object))
        }
        GraphNode::Gate { .. } => None,
    }
}

fn annotation<'o>(object: &'o Value, name: &str) -> Option<&'o str> {
    object["metadata"]["annotations"][name].as_str()
}

/// Whether somebody asked for an order between two objects, read from the objects and nothing else.
fn asked(
    reason: EdgeReason,
    from: (usize, &ObjectKey, &Value),
    to: (usize, &ObjectKey, &Value),
    requires: &[Vec<usize>],
) -> bool {
    let (part, key, object) = from;
    let rule = |of: &Value, order: &str, member: &Value| {
        let group = annotation(member, "kapp.k14s.io/change-group").unwrap_or("none");
        annotation(of, "kapp.k14s.io/change-rule")
            == Some(&format!("upsert {order} upserting {group}"))
    };
    match reason {
        EdgeReason::Namespace => {
            key.kind == "Namespace" && to.1.namespace.as_ref() == Some(&key.name)
        }
        EdgeReason::Definition => key.kind == "CustomResourceDefinition" && to.1.kind == "Till",
        EdgeReason::Reference | EdgeReason::Rights => {
            key.namespace == to.1.namespace && to.1.kind == "Deployment"
        }
        EdgeReason::DependsOn => {
            let path = format!(
                "{}/namespaces/{}/{}/{}",
                key.group,
                key.namespace.as_deref().unwrap_or("-"),
                key.kind,
                key.name
            );
            annotation(to.2, "config.kubernetes.io/depends-on") == Some(&path)
        }
        EdgeReason::ChangeRule => {
            part == to.0 && (rule(to.2, "after", object) || rule(object, "before", to.2))
        }
        EdgeReason::SyncWave => part == to.0,
        EdgeReason::Requires => requires[to.0].contains(&part),
        _ => false,
    }
}

fn law(name: &'static str, test: impl Fn(Vec<Spec>, Vec<Vec<usize>>) -> Result<(), TestCaseError>) {
    let config = law::cases(400, 20_000);
    law::law(name, config, sets(), |(specs, requires)| {
        test(specs, requires)
    });
}

#[test]
fn a_graph_has_no_cycle_and_its_levels_respect_every_edge() {
    law("properties::order acyclic", |specs, requires| {
        let Ok(graph) = graph(&desired(&specs), &requires) else {
            return Ok(());
        };
        let mut level = vec![usize::MAX; graph.nodes.len()];
        for (at, nodes) in graph.levels().iter().enumerate() {
            for node in nodes {
                level[*node] = at;
            }
        }
        for edge in &graph.edges {
            prop_assert!(level[edge.from] < level[edge.to], "{edge:?}");
        }
        prop_assert!(graph.edges.windows(2).all(|pair| pair[0] < pair[1]));
        let ranks: Vec<Option<ObjectRank>> = graph
            .nodes
            .iter()
            .map(|node| match node {
                GraphNode::Object { key, .. } => Some(ObjectRank::from_object(key, None)),
                GraphNode::Gate { .. } => None,
            })
            .collect();
        let objects = ranks.iter().filter(|rank| rank.is_some()).count();
        prop_assert!(ranks[..objects].is_sorted() && ranks[objects..].iter().all(Option::is_none));
        Ok(())
    });
}

#[test]
fn every_order_that_is_asked_for_is_kept_also_over_gates() {
    law("properties::order kept", |specs, requires| {
        let desired = desired(&specs);
        let Ok(graph) = graph(&desired, &requires) else {
            return Ok(());
        };
        let reasons = [
            EdgeReason::Namespace,
            EdgeReason::Definition,
            EdgeReason::DependsOn,
            EdgeReason::ChangeRule,
            EdgeReason::Requires,
        ];
        for from in 0..graph.nodes.len() {
            let after = after(&graph, from);
            for to in 0..graph.nodes.len() {
                let (Some(one), Some(other)) = (
                    object(&graph.nodes[from], &desired),
                    object(&graph.nodes[to], &desired),
                ) else {
                    continue;
                };
                let wave = |of: &Value| {
                    annotation(of, "argocd.argoproj.io/sync-wave").map(str::parse::<i64>)
                };
                let waves = one.0 == other.0
                    && matches!((wave(one.2), wave(other.2)), (Some(Ok(a)), Some(Ok(b))) if a < b);
                // A member waits for the Namespace of its own add-on, if that wants one too.
                let own = |reason| {
                    reason != EdgeReason::Namespace
                        || one.0 == other.0
                        || !desired[other.0].objects.contains_key(one.1)
                };
                let asked = reasons.iter().any(|reason| {
                    from != to && own(*reason) && asked(*reason, one, other, &requires)
                });
                if waves || asked {
                    prop_assert!(
                        after.contains(&to),
                        "{} before {}",
                        graph.nodes[from],
                        graph.nodes[to]
                    );
                }
            }
        }
        Ok(())
    });
}

#[test]
fn a_cycle_is_a_real_one() {
    law("properties::order cycle", |specs, requires| {
        let desired = desired(&specs);
        let Err(cycle) = graph(&desired, &requires) else {
            return Ok(());
        };
        prop_assert!(cycle.steps.len() > 1, "{cycle}");
        let next = cycle.steps.iter().cycle().skip(1);
        for (at, ((from, reason), (to, _))) in cycle.steps.iter().zip(next).enumerate() {
            prop_assert!(
                !cycle.steps[..at].iter().any(|(seen, _)| seen == from),
                "{cycle}"
            );
            if let (Some(one), Some(other)) = (object(from, &desired), object(to, &desired)) {
                prop_assert!(
                    asked(*reason, one, other, &requires),
                    "{from} → ({reason}) → {to} in {cycle}"
                );
            }
        }
        prop_assert!(cycle.to_string().contains("; change "), "{cycle}");
        Ok(())
    });
}

#[test]
fn the_order_of_the_input_decides_nothing() {
    law("properties::order input", |specs, requires| {
        let desired = desired(&specs);
        let forward = graph(&desired, &requires);
        let mirrored = |part: &usize| PARTS.len() - 1 - part;
        let requires: Vec<Vec<usize>> = requires
            .iter()
            .map(|parts| parts.iter().map(mirrored).collect())
            .collect();
        let turned: Vec<GraphPart<'_>> = (0..PARTS.len())
            .rev()
            .map(|part| GraphPart {
                name: PARTS[part],
                desired: &desired[part],
                requires: &requires[part],
            })
            .collect();
        let turn = |node: &GraphNode| match node {
            GraphNode::Object { part, key } => GraphNode::Object {
                part: PARTS.len() - 1 - part,
                key: key.clone(),
            },
            gate @ GraphNode::Gate { .. } => gate.clone(),
        };
        let backward = Graph::new(&turned).map(|graph| Graph {
            nodes: graph.nodes.iter().map(turn).collect(),
            edges: graph.edges,
        });
        let backward = backward.map_err(|cycle| Cycle {
            steps: cycle
                .steps
                .iter()
                .map(|(node, reason)| (turn(node), *reason))
                .collect(),
        });
        prop_assert_eq!(forward, backward);
        Ok(())
    });
}
