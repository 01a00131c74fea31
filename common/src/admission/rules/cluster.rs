//! Rules for namespaces as places of installations: each stands for one cluster (semantics 6).

use crate::admission::Facts;
use crate::admission::verdict::Problem;
use crate::api::names::{CLUSTER_LOCAL, LABEL_CLUSTER};

/// An installation in a namespace that stands for no cluster is never executed. Whoever may create installations in some
/// namespace could otherwise have an administrator's `upgrade` install anything for them.
#[must_use]
pub fn stands_for_none(namespace: &str, facts: &Facts) -> Option<Problem> {
    if facts.stands_for_cluster(namespace) {
        return None;
    }
    let message = no_cluster(namespace, &facts.settings.system_namespace);
    Some(Problem::invalid(
        "no-cluster",
        "metadata.namespace",
        message,
    ))
}

/// The sentence for it; plugin and webhook say the same.
#[must_use]
pub fn no_cluster(namespace: &str, system: &str) -> String {
    format!(
        "{namespace} does not stand for a cluster: installations of this cluster belong in {system}, or in a namespace that \
         has the label {LABEL_CLUSTER}={CLUSTER_LOCAL}"
    )
}
