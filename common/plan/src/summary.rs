//! A plan as text for people, with the counts that the report repeats.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::Graph;
use super::order::ObjectRank;
use super::{Action, InstallationPlan, Step};
use common::manifest::key::ObjectKey;

/// What a plan does with an object, in the terms that the user sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlannedAction {
    /// It is applied.
    Apply(Action),
    /// It is deleted and created again.
    Recreate,
    /// It is deleted.
    Prune,
    /// It is released because it existed before the installation.
    Release,
    /// It is no longer in the manifest but stays in the cluster.
    Retain,
}

impl PlannedAction {
    /// `create`, `adopt`, `update`, `restore`, `refresh`, `recreate`, `prune`, `release` or `retain`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Apply(Action::Create) => "create",
            Self::Apply(Action::Adopt) => "adopt",
            Self::Apply(Action::Update) => "update",
            Self::Apply(Action::Restore) => "restore",
            Self::Apply(Action::Refresh) => "refresh",
            Self::Recreate => "recreate",
            Self::Prune => "prune",
            Self::Release => "release",
            Self::Retain => "retain",
        }
    }
}

/// One line of the confirmation: `create   9 objects   ServiceAccount, ClusterRole ×2, …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryLine {
    /// The action.
    pub action: PlannedAction,
    /// The number of objects.
    pub objects: usize,
    /// Their kinds with counts, in the order in which they are applied.
    pub kinds: String,
}

/// Returns a line for each kind of action in the plan.
#[must_use]
pub fn lines(plan: &InstallationPlan) -> Vec<SummaryLine> {
    use PlannedAction::{Apply, Prune, Recreate, Release, Retain};
    let recreated = plan.recreations.iter();
    // With holders, only these are deleted first; the object itself is not recreated.
    let recreated = recreated.filter(|object| object.holders.is_empty());
    let recreated: BTreeSet<&ObjectKey> = recreated.map(|object| &object.key).collect();
    let steps = plan.steps.iter();
    let steps = steps.map(|step| (Apply(step.action), &step.target.key));
    let steps = steps.filter(|(_, key)| !recreated.contains(key));
    let deleted = plan.deletions().map(|deletion| &deletion.target.key);
    let all = steps
        .chain(recreated.iter().map(|key| (Recreate, *key)))
        .chain(deleted.map(|key| (Prune, key)))
        .chain(plan.released().map(|key| (Release, key)))
        .chain(plan.retained.iter().map(|key| (Retain, key)));
    let mut lines: BTreeMap<PlannedAction, Vec<&ObjectKey>> = BTreeMap::new();
    for (action, key) in all {
        lines.entry(action).or_default().push(key);
    }
    let lines = lines.into_iter().map(|(action, keys)| SummaryLine {
        action,
        objects: keys.len(),
        kinds: kinds(keys),
    });
    lines.collect()
}

/// Lists kinds with counts, in the order in which they are applied: `ServiceAccount, ClusterRole ×2, Deployment`.
#[must_use]
pub fn kinds<'a>(keys: impl IntoIterator<Item = &'a ObjectKey>) -> String {
    let mut counts: BTreeMap<(ObjectRank, &str, &str), usize> = BTreeMap::new();
    for key in keys {
        let kind = (
            ObjectRank::from_object(key, None),
            key.group.as_str(),
            key.kind.as_str(),
        );
        *counts.entry(kind).or_default() += 1;
    }
    let words = counts.into_iter().map(|((_, _, kind), count)| match count {
        1 => kind.to_owned(),
        count => format!("{kind} ×{count}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Describes the order of an installation's steps by the levels of the command's graph:
/// `1 identity and rules → 2 Service, Deployment → 3 APIService`. Objects of a level wait for an earlier one, and are
/// independent of each other. Returns `None` if nothing waits.
#[must_use]
pub fn order(plan: &InstallationPlan, graph: &Graph, part: usize) -> Option<String> {
    let levels = graph.levels().into_iter().filter_map(|level| {
        let keys = level
            .iter()
            .filter_map(|node| graph.object_in_part(*node, part));
        let steps = keys.filter_map(|key| plan.step(key));
        let mut ranks: BTreeMap<ObjectRank, BTreeSet<(&str, &str)>> = BTreeMap::new();
        for step in steps {
            let key = &step.target.key;
            let kinds = ranks.entry(rank(step)).or_default();
            kinds.insert((&key.group, &key.kind));
        }
        let words = ranks.iter().map(|(rank, kinds)| rank_words(*rank, kinds));
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join(", "))
    });
    let levels: Vec<String> = levels
        .zip(1..)
        .map(|(words, number)| format!("{number} {words}"))
        .collect();
    (levels.len() > 1).then(|| levels.join(" → "))
}

/// Counts the steps of a plan by rank.
#[must_use]
pub fn steps_by_rank(plan: &InstallationPlan) -> BTreeMap<ObjectRank, usize> {
    let mut counts = BTreeMap::new();
    for step in &plan.steps {
        *counts.entry(rank(step)).or_default() += 1;
    }
    counts
}

fn rank(step: &Step) -> ObjectRank {
    ObjectRank::from_object(&step.target.key, Some(&step.object))
}

/// Describes a rank by its kinds if they are few, otherwise by its title.
fn rank_words(rank: ObjectRank, kinds: &BTreeSet<(&str, &str)>) -> String {
    const FEW: usize = 3;
    if rank == ObjectRank::Identity || kinds.len() > FEW {
        return rank.title().to_owned();
    }
    let kinds: Vec<&str> = kinds.iter().map(|(_, kind)| *kind).collect();
    kinds.join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;
    use crate::closing::ClosingStep;
    use crate::graph::{Edge, EdgeReason, GraphNode, Until};
    use crate::teardown::TeardownTurn;
    use crate::{Deletion, Target, Verb};
    use common::api::names::InstallationName;

    fn target(group: &str, kind: &str, name: &str) -> Target {
        Target {
            key: ObjectKey {
                group: group.to_owned(),
                kind: kind.to_owned(),
                namespace: None,
                name: name.to_owned(),
            },
            version: "v1".to_owned(),
            plural: String::new(),
        }
    }

    /// The example of the documentation, whose bindings have a rank of their own here.
    #[test]
    fn words() {
        let rbac = "rbac.authorization.k8s.io";
        let step = |(group, kind, name)| Step {
            target: target(group, kind, name),
            action: Action::Create,
            object: Arc::new(Value::Null),
            uid: None,
            digest: String::new(),
            seen: None,
            policy: crate::conflicts::Policy::default(),
        };
        let steps = [
            ("apiregistration.k8s.io", "APIService", "a"),
            ("apps", "Deployment", "a"),
            ("", "Service", "a"),
            (rbac, "RoleBinding", "a"),
            (rbac, "ClusterRoleBinding", "a"),
            (rbac, "ClusterRoleBinding", "b"),
            (rbac, "ClusterRole", "a"),
            (rbac, "ClusterRole", "b"),
            ("", "ServiceAccount", "a"),
        ];
        let mut steps = steps.map(step);
        steps.sort_by(|a, b| a.target.key.cmp(&b.target.key));
        let plan = InstallationPlan {
            verb: Verb::Install,
            steps: steps.to_vec(),
            closing: vec![ClosingStep::Delete {
                turn: TeardownTurn::Identity,
                deletion: Deletion {
                    target: target("", "ConfigMap", "old"),
                    uid: String::new(),
                    resource_version: String::new(),
                    labels: BTreeMap::new(),
                },
            }],
            ..InstallationPlan::nothing(
                InstallationName {
                    namespace: "kubectl-addons".to_owned(),
                    name: "metrics-server".to_owned(),
                },
                "metrics-server",
            )
        };
        let line = |action, objects, kinds: &str| SummaryLine {
            action,
            objects,
            kinds: kinds.to_owned(),
        };
        let created = "ServiceAccount, ClusterRole ×2, ClusterRoleBinding ×2, RoleBinding, Service, Deployment, APIService";
        assert_eq!(
            lines(&plan),
            [
                line(PlannedAction::Apply(Action::Create), 9, created),
                line(PlannedAction::Prune, 1, "ConfigMap")
            ]
        );
        let keys = plan.steps.iter().map(|step| &step.target.key);
        let node = |key: &ObjectKey| GraphNode::Object {
            part: 0,
            key: key.clone(),
        };
        let alone = Graph {
            nodes: keys.clone().map(node).collect(),
            edges: Vec::new(),
        };
        assert_eq!(order(&plan, &alone, 0), None, "nothing waits");
        let api_service = plan
            .steps
            .iter()
            .position(|step| step.target.key.kind == "APIService");
        let last = api_service.unwrap();
        let graph = Graph {
            edges: (0..plan.steps.len())
                .filter(|node| *node != last)
                .map(|from| Edge {
                    from,
                    to: last,
                    until: Until::Applied,
                    reason: EdgeReason::ApiService,
                })
                .collect(),
            ..alone
        };
        assert_eq!(
            order(&plan, &graph, 0).unwrap(),
            "1 identity and rules, ClusterRoleBinding, RoleBinding, Service, Deployment → 2 APIService"
        );
        assert_eq!(order(&plan, &graph, 1), None, "another installation");
    }
}
