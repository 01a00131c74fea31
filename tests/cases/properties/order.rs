//! The laws of the order: every order that is asked for is kept, nothing else decides it, and a cycle is a real one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_tests::tally::Tally;
use common::manifest::Place;
use common::manifest::key::{Gvk, ObjectKey};
use common::plan::Target;
use common::plan::desired::{Desired, DesiredObject};
use common::plan::graph::{Cycle, Graph, Node, NodeId, Part, Reason};
use common::plan::order::Rank;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// What a random object is made of.
#[derive(Clone, Debug)]
struct Spec {
    part: usize,
    kind: &'static str,
    name: &'static str,
    namespace: &'static str,
    wave: Option<i64>,
    after: Option<(&'static str, &'static str)>,
    group: Option<&'static str>,
    rule: Option<(&'static str, &'static str)>,
}

const PARTS: [&str; 3] = ["one", "two", "three"];

fn spec() -> impl Strategy<Value = Spec> {
    let kinds = vec![
        "Namespace",
        "ConfigMap",
        "ServiceAccount",
        "Deployment",
        "Service",
        "LimitRange",
        "Till",
        "CustomResourceDefinition",
        "ValidatingWebhookConfiguration",
        "RoleBinding",
    ];
    let names = || select(vec!["a", "b"]);
    (
        0..3usize,
        select(kinds),
        names(),
        select(vec!["a", "b"]),
        weighted(0.2, -1..2i64),
        weighted(
            0.15,
            (select(vec!["ConfigMap", "Deployment", "Till"]), names()),
        ),
        weighted(0.2, select(vec!["g", "h"])),
        weighted(
            0.15,
            (select(vec!["before", "after"]), select(vec!["g", "h"])),
        ),
    )
        .prop_map(
            |(part, kind, name, namespace, wave, after, group, rule)| Spec {
                part,
                kind,
                name,
                namespace,
                wave,
                after,
                group,
                rule,
            },
        )
}

/// Objects, and which part requires which.
fn sets() -> impl Strategy<Value = (Vec<Spec>, Vec<Vec<usize>>)> {
    let requires = select(vec![
        vec![vec![], vec![], vec![]],
        vec![vec![1], vec![], vec![]],
        vec![vec![1, 2], vec![], vec![1]],
        vec![vec![1], vec![2], vec![0]],
    ]);
    (vec(spec(), 0..24), requires)
}

impl Spec {
    fn object(&self) -> Value {
        let (api_version, namespaced, spec) = match self.kind {
            "Namespace" => ("v1", false, json!({})),
            "Deployment" => (
                "apps/v1",
                true,
                json!({"template": {
                "metadata": {"labels": {"app": self.name}},
                "spec": {"serviceAccountName": "a", "volumes": [{"configMap": {"name": self.name}}]}}}),
            ),
            "Service" => ("v1", true, json!({"selector": {"app": self.name}})),
            "Till" => ("e.test/v1", true, json!({})),
            "CustomResourceDefinition" => (
                "apiextensions.k8s.io/v1",
                false,
                json!({"group": "e.test", "names": {"kind": "Till"}}),
            ),
            "ValidatingWebhookConfiguration" => {
                ("admissionregistration.k8s.io/v1", false, json!({}))
            }
            "RoleBinding" => ("rbac.authorization.k8s.io/v1", true, json!({})),
            _ => ("v1", true, json!({})),
        };
        let mut annotations = BTreeMap::new();
        if let Some(wave) = self.wave {
            annotations.insert("argocd.argoproj.io/sync-wave", wave.to_string());
        }
        if let Some((kind, name)) = self.after {
            let group = match kind {
                "Deployment" => "apps",
                "Till" => "e.test",
                _ => "",
            };
            annotations.insert(
                "config.kubernetes.io/depends-on",
                format!("{group}/namespaces/a/{kind}/{name}"),
            );
        }
        if let Some(group) = self.group {
            annotations.insert("kapp.k14s.io/change-group", group.to_owned());
        }
        if let Some((order, group)) = self.rule {
            annotations.insert(
                "kapp.k14s.io/change-rule",
                format!("upsert {order} upserting {group}"),
            );
        }
        let mut object = json!({"apiVersion": api_version, "kind": self.kind,
            "metadata": {"name": self.name, "annotations": annotations}, "spec": spec,
            "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": self.namespace}],
            "webhooks": [{"clientConfig": {"service": {"name": "a", "namespace": "a"}},
                "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]}]});
        if namespaced {
            object["metadata"]["namespace"] = json!(self.namespace);
        }
        object
    }
}

/// The parts; a key that another part has already is left out, but for Namespaces.
fn desired(specs: &[Spec]) -> Vec<Desired> {
    let mut parts = vec![Desired::default(); PARTS.len()];
    let mut seen = BTreeSet::new();
    for (spec, line) in specs.iter().zip(1..) {
        let object = spec.object();
        let key = ObjectKey::of(&object).expect("a key");
        if key.kind != "Namespace" && !seen.insert(key.clone()) {
            continue;
        }
        let gvk = Gvk::of(&object).expect("a kind");
        let desired = DesiredObject {
            target: Target {
                key: key.clone(),
                version: gvk.version,
                plural: format!("{}s", gvk.kind.to_lowercase()),
            },
            object: Arc::new(object),
            digest: String::new(),
            create_only: false,
            place: Place {
                file: "m.yaml".to_owned(),
                line,
                column: 0,
            },
        };
        parts[spec.part].objects.entry(key).or_insert(desired);
    }
    parts
}

fn graph(desired: &[Desired], requires: &[Vec<usize>]) -> Result<Graph, Cycle> {
    let parts: Vec<Part<'_>> = (0..desired.len())
        .map(|part| Part {
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
fn object<'d>(node: &Node, desired: &'d [Desired]) -> Option<(usize, &'d ObjectKey, &'d Value)> {
    match node {
        Node::Object { part, key } => {
            let (key, object) = desired[*part].objects.get_key_value(key)?;
            Some((*part, key, &*object.object))
        }
        Node::Gate { .. } => None,
    }
}

fn annotation<'o>(object: &'o Value, name: &str) -> Option<&'o str> {
    object["metadata"]["annotations"][name].as_str()
}

/// Whether somebody asked for an order between two objects, read from the objects and nothing else.
fn asked(
    reason: Reason,
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
        Reason::Namespace => key.kind == "Namespace" && to.1.namespace.as_ref() == Some(&key.name),
        Reason::Definition => key.kind == "CustomResourceDefinition" && to.1.kind == "Till",
        Reason::Reference | Reason::Rights => {
            key.namespace == to.1.namespace && to.1.kind == "Deployment"
        }
        Reason::DependsOn => {
            let path = format!(
                "{}/namespaces/{}/{}/{}",
                key.group,
                key.namespace.as_deref().unwrap_or("-"),
                key.kind,
                key.name
            );
            annotation(to.2, "config.kubernetes.io/depends-on") == Some(&path)
        }
        Reason::ChangeRule => {
            part == to.0 && (rule(to.2, "after", object) || rule(object, "before", to.2))
        }
        Reason::SyncWave => part == to.0,
        Reason::Requires => requires[to.0].contains(&part),
        _ => false,
    }
}

fn law(name: &'static str, test: impl Fn(Vec<Spec>, Vec<Vec<usize>>) -> Result<(), TestCaseError>) {
    let cases = if std::env::var_os("FULL").is_some() {
        20_000
    } else {
        400
    };
    let mut tally = Tally::new(name);
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&sets(), |(specs, requires)| test(specs, requires));
    assert!(
        result.is_ok(),
        "{}",
        result.map_or_else(|error| error.to_string(), |()| String::new())
    );
    (0..cases).for_each(|_| tally.ran());
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
        let ranks: Vec<Option<Rank>> = graph
            .nodes
            .iter()
            .map(|node| match node {
                Node::Object { key, .. } => Some(Rank::of(key, None)),
                Node::Gate { .. } => None,
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
            Reason::Namespace,
            Reason::Definition,
            Reason::DependsOn,
            Reason::ChangeRule,
            Reason::Requires,
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
                    reason != Reason::Namespace
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
        let turned: Vec<Part<'_>> = (0..PARTS.len())
            .rev()
            .map(|part| Part {
                name: PARTS[part],
                desired: &desired[part],
                requires: &requires[part],
            })
            .collect();
        let turn = |node: &Node| match node {
            Node::Object { part, key } => Node::Object {
                part: PARTS.len() - 1 - part,
                key: key.clone(),
            },
            gate @ Node::Gate { .. } => gate.clone(),
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
