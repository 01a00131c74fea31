//! Ranks of objects: they decide what begins first if no edge of the [`super::graph`] does, and group objects for display. Deletions have
//! an order of their own: [`super::teardown`].

use serde_json::Value;

use common::manifest::key::ObjectKey;
use common::manifest::kinds::traits::is_built_in;

/// The rank of an object. Few objects of the same rank need an order among each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectRank {
    /// Namespace objects.
    Namespaces,
    /// CustomResourceDefinitions.
    Definitions,
    /// Objects that workloads need: classes, quota and limits, accounts, roles, configuration, storage.
    Identity,
    /// Objects that are refused or removed while an object that they name is missing: the API server resolves the role of a binding for
    /// users who are not cluster admins, and the token controller deletes a token without its account.
    Bindings,
    /// Services, workloads, and objects about them: disruption budgets, autoscalers, ingresses.
    Workloads,
    /// Objects of kinds that Kubernetes does not define.
    CustomResources,
    /// Objects by which the API server calls backends. They come last, because a backend that does not answer breaks the whole cluster.
    Admission,
}

impl ObjectRank {
    /// Returns the rank of an object. `object` is its manifest, if there is one: the type of a Secret decides.
    #[must_use]
    pub fn from_object(key: &ObjectKey, object: Option<&Value>) -> Self {
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

    /// Returns the title of a rank, for display.
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
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        use ObjectRank::{
            Admission, CustomResources, Definitions, Identity, Namespaces, Workloads,
        };
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
            (
                ObjectRank::Bindings,
                "rbac.authorization.k8s.io",
                "RoleBinding",
            ),
            (Workloads, "", "Service"),
            (Workloads, "apps", "Deployment"),
            (Workloads, "batch", "Job"),
            (Workloads, "policy", "PodDisruptionBudget"),
            (Workloads, "autoscaling", "HorizontalPodAutoscaler"),
            (Workloads, "networking.k8s.io", "Ingress"),
            // A custom kind may have the name of a built-in one, and its group may end in k8s.io.
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
            assert_eq!(
                ObjectRank::from_object(&key(group, kind), None),
                rank,
                "{group}/{kind}"
            );
        }
        let token = json!({"type": "kubernetes.io/service-account-token"});
        assert_eq!(
            ObjectRank::from_object(&key("", "Secret"), Some(&token)),
            ObjectRank::Bindings,
            "after its ServiceAccount"
        );
    }
}
