//! The order of things: which objects are applied before which, and deleted after which.
//!
//! Ranks, not edges: few waves, for each costs a round trip. The order is the lesson of research/peers.md §5; a graph
//! with edges between objects will replace this file.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Deletion, Step, Wave};
use crate::manifest::key::ObjectKey;

/// The wave of an object. Objects of one rank need no order among each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rank {
    /// Namespace objects.
    Namespaces,
    /// CustomResourceDefinitions.
    Definitions,
    /// What workloads need to be there: classes, quota and limits, accounts, roles, configuration, storage.
    Identity,
    /// What is refused or removed while what it names is not there: the API server resolves the role of a binding
    /// for users who are no cluster admins, and the token controller deletes a token without its account.
    Bindings,
    /// Services, workloads, and what stands around them: disruption budgets, autoscalers, ingresses.
    Workloads,
    /// Objects of kinds that Kubernetes does not bring.
    CustomResources,
    /// What the API server calls: dead backends break the whole cluster, so these come when all else is there.
    Admission,
}

/// API groups that Kubernetes brings itself. Many CRDs live in groups ending in `k8s.io`, so the suffix tells nothing.
const BUILT_IN_GROUPS: [&str; 24] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Whether Kubernetes itself brings an API group.
#[must_use]
pub fn is_built_in(group: &str) -> bool {
    BUILT_IN_GROUPS.contains(&group)
}

impl Rank {
    /// The rank of an object. `object` is its manifest where there is one: a Secret's type decides.
    #[must_use]
    pub fn of(key: &ObjectKey, object: Option<&Value>) -> Self {
        let token = |object: &Value| {
            object.get("type").and_then(Value::as_str)
                == Some("kubernetes.io/service-account-token")
        };
        match (key.group.as_str(), key.kind.as_str()) {
            ("", "Namespace") => Self::Namespaces,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Self::Definitions,
            ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => Self::Admission,
            ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => Self::Bindings,
            ("", "Secret") if object.is_some_and(token) => Self::Bindings,
            ("", "Service" | "Endpoints" | "Pod" | "ReplicationController")
            | ("apps" | "batch" | "autoscaling" | "discovery.k8s.io", _)
            | ("policy", "PodDisruptionBudget")
            | ("networking.k8s.io", "Ingress")
            | ("extensions", "DaemonSet" | "Deployment" | "Ingress" | "ReplicaSet") => {
                Self::Workloads
            }
            (group, _) if is_built_in(group) => Self::Identity,
            _ => Self::CustomResources,
        }
    }

    /// What people read of a wave.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Definitions => "definitions",
            Self::Identity => "identity and rules",
            Self::Bindings => "bindings",
            Self::Workloads => "workloads",
            Self::CustomResources => "custom resources",
            Self::Admission => "APIServices and webhook configurations",
        }
    }

    /// Place in the order of deletion. It is the reverse, but for definitions: to delete one is to delete every object of
    /// its kind, also those of users, and their finalizers need the controller that the workloads run.
    fn deletion(self) -> u8 {
        match self {
            Self::Admission => 0,
            Self::CustomResources => 1,
            Self::Definitions => 2,
            Self::Workloads => 3,
            Self::Bindings => 4,
            Self::Identity => 5,
            Self::Namespaces => 6,
        }
    }
}

/// Steps in waves, each sorted by key. Empty waves are left out.
///
/// A wave of definitions is a barrier where a later step applies an object of one of their kinds, else nobody needs to
/// wait. A wave of namespaces is none: the answer to its create says Active already, and a terminating one is refused
/// before the plan is made.
#[must_use]
pub fn waves(steps: Vec<Step>) -> Vec<Wave> {
    let mut ranks: BTreeMap<Rank, Vec<Step>> = BTreeMap::new();
    for step in steps {
        let rank = Rank::of(&step.target.key, Some(&step.object));
        ranks.entry(rank).or_default().push(step);
    }
    let defined: BTreeSet<(String, String)> = ranks
        .get(&Rank::Definitions)
        .into_iter()
        .flatten()
        .filter_map(|step| defined_kind(&step.object))
        .collect();
    let barrier = ranks.values().flatten().any(|step| {
        let key = &step.target.key;
        defined.contains(&(key.group.clone(), key.kind.clone()))
    });
    let waves = ranks.into_iter().map(|(rank, mut steps)| {
        steps.sort_by(|a, b| a.target.cmp(&b.target));
        Wave {
            title: rank.title(),
            steps,
            barrier: barrier && rank == Rank::Definitions,
        }
    });
    waves.collect()
}

/// Deletions in groups, each sorted by key: a group begins when the one before is gone.
#[must_use]
pub fn deletions(deletions: Vec<Deletion>) -> Vec<Vec<Deletion>> {
    let mut groups: BTreeMap<u8, Vec<Deletion>> = BTreeMap::new();
    for deletion in deletions {
        let place = Rank::of(&deletion.target.key, None).deletion();
        groups.entry(place).or_default().push(deletion);
    }
    let groups = groups.into_values().map(|mut group| {
        group.sort_by(|a, b| a.target.cmp(&b.target));
        group
    });
    groups.collect()
}

/// Group and kind that a CustomResourceDefinition object defines; `None` for any other object.
#[must_use]
pub fn defined_kind(object: &Value) -> Option<(String, String)> {
    if object.get("kind")?.as_str()? != "CustomResourceDefinition" {
        return None;
    }
    let spec = object.get("spec")?;
    let kind = spec.get("names")?.get("kind")?.as_str()?;
    Some((spec.get("group")?.as_str()?.to_owned(), kind.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::plan::{Action, Target};

    fn key(group: &str, kind: &str) -> ObjectKey {
        ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: "x".to_owned(),
        }
    }

    #[test]
    fn ranks() {
        use Rank::{Admission, CustomResources, Definitions, Identity, Namespaces, Workloads};
        let rows = [
            (Namespaces, "", "Namespace"),
            (
                Definitions,
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
            ),
            (Identity, "scheduling.k8s.io", "PriorityClass"),
            (Identity, "storage.k8s.io", "StorageClass"),
            (Identity, "networking.k8s.io", "IngressClass"),
            (Identity, "networking.k8s.io", "NetworkPolicy"),
            (Identity, "", "ResourceQuota"),
            (Identity, "", "ServiceAccount"),
            (Identity, "rbac.authorization.k8s.io", "ClusterRole"),
            (Identity, "", "Secret"),
            (Identity, "", "ConfigMap"),
            (Identity, "", "PersistentVolumeClaim"),
            (Rank::Bindings, "rbac.authorization.k8s.io", "RoleBinding"),
            (Workloads, "", "Service"),
            (Workloads, "apps", "Deployment"),
            (Workloads, "batch", "Job"),
            (Workloads, "policy", "PodDisruptionBudget"),
            (Workloads, "autoscaling", "HorizontalPodAutoscaler"),
            (Workloads, "networking.k8s.io", "Ingress"),
            // A kind of a CRD may be called like one of ours, and its group may end in k8s.io.
            (CustomResources, "serving.knative.dev", "Service"),
            (
                CustomResources,
                "snapshot.storage.k8s.io",
                "VolumeSnapshotClass",
            ),
            (CustomResources, "gateway.networking.k8s.io", "GatewayClass"),
            (Admission, "apiregistration.k8s.io", "APIService"),
            (
                Admission,
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration",
            ),
        ];
        for (rank, group, kind) in rows {
            assert_eq!(Rank::of(&key(group, kind), None), rank, "{group}/{kind}");
        }
        let token = json!({"type": "kubernetes.io/service-account-token"});
        assert_eq!(
            Rank::of(&key("", "Secret"), Some(&token)),
            Rank::Bindings,
            "after its ServiceAccount"
        );
    }

    fn step(group: &str, kind: &str, object: Value) -> Step {
        Step {
            target: Target {
                key: key(group, kind),
                version: "v1".to_owned(),
                plural: String::new(),
            },
            action: Action::Create,
            object: Arc::new(object),
            policy: crate::plan::conflicts::Policy::default(),
        }
    }

    #[test]
    fn definitions_are_a_barrier_only_where_needed() {
        let crd = || {
            step(
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                json!({"kind": "CustomResourceDefinition",
                       "spec": {"group": "shop.example", "names": {"kind": "Till"}}}),
            )
        };
        let other = || step("", "ConfigMap", Value::Null);
        let shape = |steps: Vec<Step>| -> Vec<(&str, bool)> {
            waves(steps)
                .iter()
                .map(|wave| (wave.title, wave.barrier))
                .collect()
        };
        assert_eq!(
            shape(vec![other(), crd()]),
            [("definitions", false), ("identity and rules", false)]
        );
        assert_eq!(
            shape(vec![step("shop.example", "Till", Value::Null), crd()]),
            [("definitions", true), ("custom resources", false)]
        );
        assert_eq!(
            shape(vec![step("shop.example", "Basket", Value::Null), crd()]),
            [("definitions", false), ("custom resources", false)]
        );
    }

    #[test]
    fn deletion_is_the_reverse_with_controllers_last() {
        let deletion = |(group, kind): (&str, &str)| Deletion {
            target: step(group, kind, Value::Null).target,
            uid: String::new(),
        };
        let all = [
            ("", "Namespace"),
            ("", "ServiceAccount"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
            ("apps", "Deployment"),
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("shop.example", "Till"),
            (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
            ),
        ];
        let groups = deletions(all.map(deletion).to_vec());
        let kinds: Vec<&str> = groups
            .iter()
            .map(|group| group[0].target.key.kind.as_str())
            .collect();
        let expected: Vec<&str> = all.iter().rev().map(|(_, kind)| *kind).collect();
        assert_eq!(kinds, expected);
    }
}
