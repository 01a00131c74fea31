//! Properties of kinds that follow from their names, and the groups that Kubernetes itself defines.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::manifest::key::ObjectKey;

/// Properties of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindTraits {
    /// The objects that an operation waits for until they are ready.
    pub waited: WaitScope,
    /// Set if deleting an object of the kind deletes data or other objects with it. Such objects are pruned only when the user names the
    /// kind, and never recreated (semantics 7.3).
    pub kept: Option<KeptKind>,
}

/// The objects of a kind that an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitScope {
    /// No objects: they are ready once they exist, or become ready for reasons outside of the cluster.
    Never,
    /// All objects.
    Always,
    /// Services with a load balancer; all other Services are ready once they exist.
    LoadBalancers,
}

/// Kinds whose deletion deletes data or other objects. They are deleted only when the user names the kind (semantics 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum KeptKind {
    /// Deleting one deletes all objects in it.
    Namespace,
    /// Deleting one deletes all objects of its kind.
    CustomResourceDefinition,
    /// Deleting one deletes data.
    PersistentVolumeClaim,
    /// Deleting one deletes data.
    PersistentVolume,
}

impl KeptKind {
    /// Returns whether objects of other installations may depend on an object of this kind although they have not recorded it.
    #[must_use]
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Namespace | Self::CustomResourceDefinition)
    }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";

/// A kind: group, kind, objects that are waited for, kept kind. A built-in kind without a row has the [`PLAIN`] traits, any other kind the
/// [`CUSTOM`] traits.
type KindRow = (&'static str, &'static str, WaitScope, Option<KeptKind>);

#[rustfmt::skip]
const TABLE: [KindRow; 15] = {
    use KeptKind::{CustomResourceDefinition, Namespace, PersistentVolume, PersistentVolumeClaim};
    use WaitScope::{Always, LoadBalancers, Never};
    [
        ("apps", "Deployment", Always, None),
        ("apps", "StatefulSet", Always, None),
        ("apps", "DaemonSet", Always, None),
        // Both of these roll out pods as a Deployment does, and one function evaluates their readiness.
        ("apps", "ReplicaSet", Always, None),
        ("", "ReplicationController", Always, None),
        ("", "Pod", Always, None),
        ("batch", "Job", Always, None),
        ("", "Service", LoadBalancers, None),
        // A Namespace is Active in the response to its creation.
        ("", "Namespace", Never, Some(Namespace)),
        ("", "PersistentVolumeClaim", Always, Some(PersistentVolumeClaim)),
        // A volume is Available until a claim is bound to it.
        ("", "PersistentVolume", Never, Some(PersistentVolume)),
        (EXTENSIONS, "CustomResourceDefinition", Always, Some(CustomResourceDefinition)),
        ("apiregistration.k8s.io", "APIService", Always, None),
        (ADMISSION, "ValidatingWebhookConfiguration", Always, None),
        (ADMISSION, "MutatingWebhookConfiguration", Always, None),
    ]
};

/// Properties of built-in kinds without a row: they are ready once they exist.
const PLAIN: KindTraits = KindTraits {
    waited: WaitScope::Never,
    kept: None,
};

/// Properties of custom resources. They are waited for, because their controllers report readiness in conditions.
const CUSTOM: KindTraits = KindTraits {
    waited: WaitScope::Always,
    ..PLAIN
};

impl KindTraits {
    /// Returns the properties of a kind.
    #[must_use]
    pub fn for_kind(group: &str, kind: &str) -> Self {
        let mut rows = TABLE.iter();
        match rows.find(|row| (row.0, row.1) == (group, kind)) {
            Some(&(_, _, waited, kept)) => Self { waited, kept },
            None if is_built_in(group) => PLAIN,
            None => CUSTOM,
        }
    }

    /// Returns the properties of an object's kind.
    #[must_use]
    pub fn for_key(key: &ObjectKey) -> Self {
        Self::for_kind(&key.group, &key.kind)
    }
}

impl WaitScope {
    /// Returns whether an operation waits for `object`, an object of the kind.
    #[must_use]
    pub fn includes(self, object: &Value) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::LoadBalancers => {
                let kind = object.pointer("/spec/type").and_then(Value::as_str);
                kind == Some("LoadBalancer")
            }
        }
    }
}

impl KeptKind {
    /// Returns the kept kind of an object, or `None` if its kind is not kept.
    #[must_use]
    pub fn from_key(key: &ObjectKey) -> Option<Self> {
        KindTraits::for_key(key).kept
    }

    /// Describes what deleting an object of this kind would lose, and why it is never recreated.
    #[must_use]
    pub fn loss(self) -> &'static str {
        match self {
            Self::Namespace => "everything in it would be lost",
            Self::CustomResourceDefinition => "every object of its kind would be lost",
            Self::PersistentVolumeClaim | Self::PersistentVolume => "the data in it would be lost",
        }
    }
}

/// API groups that Kubernetes itself serves. Many CRDs are in groups ending in `k8s.io` as well, so the suffix does not decide.
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

/// Returns whether Kubernetes itself serves an API group, rather than a definition or an extension API server.
#[must_use]
pub fn is_built_in(group: &str) -> bool {
    BUILT_IN_GROUPS.contains(&group)
}

/// Group and kind of the cluster-scoped kinds of Kubernetes (kube-apiserver 1.36).
const CLUSTER_SCOPED: [(&str, &str); 32] = [
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    (ADMISSION, "MutatingAdmissionPolicy"),
    (ADMISSION, "MutatingAdmissionPolicyBinding"),
    (ADMISSION, "MutatingWebhookConfiguration"),
    (ADMISSION, "ValidatingAdmissionPolicy"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"),
    (ADMISSION, "ValidatingWebhookConfiguration"),
    (EXTENSIONS, "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("certificates.k8s.io", "ClusterTrustBundle"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("internal.apiserver.k8s.io", "StorageVersion"),
    ("networking.k8s.io", "IPAddress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("node.k8s.io", "RuntimeClass"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "DeviceTaintRule"),
    ("resource.k8s.io", "ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "VolumeAttributesClass"),
    ("storagemigration.k8s.io", "StorageVersionMigration"),
];

/// Returns whether a kind of Kubernetes is cluster-scoped. For custom resources, their definition says so.
#[must_use]
pub fn is_cluster_scoped(group: &str, kind: &str) -> bool {
    CLUSTER_SCOPED.contains(&(group, kind))
}

/// Returns the group and kind that a CustomResourceDefinition object defines, or `None` for any other object.
#[must_use]
pub fn defined_kind(object: &Value) -> Option<(String, String)> {
    let api_version = object.get("apiVersion")?.as_str()?;
    if object.get("kind")?.as_str()? != "CustomResourceDefinition"
        || !api_version.starts_with("apiextensions.k8s.io/")
    {
        return None;
    }
    let spec = object.get("spec")?;
    let kind = spec.get("names")?.get("kind")?.as_str()?;
    Some((spec.get("group")?.as_str()?.to_owned(), kind.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_names_each_built_in_kind_once() {
        for (index, row) in TABLE.iter().enumerate() {
            assert!(is_built_in(row.0), "{}/{}", row.0, row.1);
            let twice = TABLE[..index]
                .iter()
                .any(|it| (it.0, it.1) == (row.0, row.1));
            assert!(!twice, "{}/{}", row.0, row.1);
        }
    }

    /// One letter for each: Waited, Kept.
    #[test]
    fn traits_of_kinds() {
        for (group, kind, expected) in [
            ("apps", "Deployment", "w-"),
            ("apps", "ReplicaSet", "w-"),
            ("", "ReplicationController", "w-"),
            ("apps", "ControllerRevision", "--"),
            ("batch", "Job", "w-"),
            ("batch", "CronJob", "--"),
            ("", "Service", "l-"),
            ("", "Namespace", "-k"),
            ("", "PersistentVolumeClaim", "wk"),
            ("", "PersistentVolume", "-k"),
            ("", "ConfigMap", "--"),
            (EXTENSIONS, "CustomResourceDefinition", "wk"),
            ("apiregistration.k8s.io", "APIService", "w-"),
            (ADMISSION, "ValidatingWebhookConfiguration", "w-"),
            (ADMISSION, "ValidatingAdmissionPolicy", "--"),
            ("autoscaling", "HorizontalPodAutoscaler", "--"),
            // Not of Kubernetes: a kind of the same name in another group, and any custom resource.
            ("example.com", "Namespace", "w-"),
            ("gateway.networking.k8s.io", "Gateway", "w-"),
        ] {
            let traits = KindTraits::for_kind(group, kind);
            let waited = match traits.waited {
                WaitScope::Always => 'w',
                WaitScope::LoadBalancers => 'l',
                WaitScope::Never => '-',
            };
            let flag = |is: bool, letter: char| if is { letter } else { '-' };
            let found: String = [waited, flag(traits.kept.is_some(), 'k')].iter().collect();
            assert_eq!(found, expected, "{group}/{kind}");
        }
    }

    #[test]
    fn of_the_services_those_with_a_load_balancer_are_waited_for() {
        let waited = KindTraits::for_kind("", "Service").waited;
        assert!(waited.includes(&json!({"spec": {"type": "LoadBalancer"}})));
        assert!(!waited.includes(&json!({"spec": {"type": "NodePort"}})));
        assert!(!waited.includes(&json!({})));
    }
}
