//! Quota, limits and network policies of a namespace before the pods that they judge.

use std::collections::BTreeMap;

use super::template::workloads;
use super::weak::Weak;
use super::{NodeId, Reason, Until};

/// Policy → workloads of its namespace: a pod that is older than its policy was never checked by it.
pub(super) fn policies(weak: &mut Weak<'_, '_>) {
    let kinds = [
        ("", "ResourceQuota"),
        ("", "LimitRange"),
        ("networking.k8s.io", "NetworkPolicy"),
    ];
    let mut policies: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    for (group, kind) in kinds {
        for (id, item) in weak.draft.of_kind(group, kind) {
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
        weak.connect(&policies, judged, Until::Applied, Reason::Policy, || {
            format!("policies of {namespace}")
        });
    }
}
