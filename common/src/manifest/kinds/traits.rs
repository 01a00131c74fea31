//! What is known of kinds by their names alone.

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
