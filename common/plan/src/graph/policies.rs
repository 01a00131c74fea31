//! Edges from quotas, limits and network policies of a namespace to the pods that they apply to.

use std::collections::BTreeMap;

use super::template::workloads;
use super::weak::SoftEdges;
use super::{EdgeReason, NodeId, Until};

/// Adds edges from each policy to the workloads of its namespace, because a pod that is older than its policy was never checked against it.
pub(super) fn add_policy_edges(weak: &mut SoftEdges<'_, '_>) {
    let kinds = [
        ("", "ResourceQuota"),
        ("", "LimitRange"),
        ("networking.k8s.io", "NetworkPolicy"),
    ];
    let mut policies: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    for (group, kind) in kinds {
        for (id, item) in weak.draft.objects_of_kind(group, kind) {
            let namespace = item.key.namespace.as_deref().unwrap_or_default();
            policies.entry(namespace).or_default().push(id);
        }
    }
    if policies.is_empty() {
        return;
    }
    let mut judged: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    for (id, template) in workloads(weak.draft) {
        judged.entry(template.namespace).or_default().push(id);
    }
    for (namespace, policies) in policies {
        let judged = judged.get(namespace).map_or(&[][..], Vec::as_slice);
        weak.connect(
            &policies,
            judged,
            Until::Applied,
            EdgeReason::Policy,
            || format!("policies of {namespace}"),
        );
    }
}
