//! Rules for namespaces as places of installations: each stands for one cluster (semantics 6).

use crate::admission::Facts;
use crate::admission::marks::Marks;
use crate::admission::verdict::Problem;
use crate::api::names::{
    ANNOTATION_CLUSTER_DELETING, CLUSTER_LOCAL, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET,
};

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

/// Nothing is installed any more where the cluster is being deleted; what is there goes with it (semantics 14).
#[must_use]
pub fn is_going(namespace: &str, facts: &Facts) -> Option<Problem> {
    let marked = facts.namespaces.get(namespace);
    marked.filter(|marks| marks.cluster_deleting).map(|_| {
        Problem::forbidden(
            "cluster-deleting",
            "metadata.namespace",
            format!(
                "the cluster of {namespace} is being deleted (annotation {ANNOTATION_CLUSTER_DELETING}): nothing is installed there"
            ),
        )
    })
}

/// Whether a namespace that is created (`old` = `None`) or changed begins to stand for this cluster: its installations then run with
/// the rights of whoever runs a command.
#[must_use]
pub fn becomes_local(new: &Marks, old: Option<&Marks>) -> bool {
    let is_local = |marks: &Marks| marks.label(LABEL_CLUSTER) == Some(CLUSTER_LOCAL);
    is_local(new) && !old.is_some_and(is_local)
}

/// The label is as good as the right to create installations in the system namespace: who lacks that right does not write it.
#[must_use]
pub fn unentitled(facts: &Facts) -> Problem {
    let system = &facts.settings.system_namespace;
    let message = format!(
        "installations of a namespace with {LABEL_CLUSTER}={CLUSTER_LOCAL} run with the rights of administrators, so the label \
         needs the right to create addoninstallations in namespace {system}"
    );
    Problem::forbidden(
        "cluster-label",
        format!("metadata.labels[{LABEL_CLUSTER}]"),
        message,
    )
}

/// The sentence about a namespace that stands for no cluster; plugin and webhook say the same.
#[must_use]
pub fn no_cluster(namespace: &str, system: &str) -> String {
    format!(
        "{namespace} does not stand for a cluster: installations of this cluster belong in {system}, or in a namespace that \
         has the label {LABEL_CLUSTER}={CLUSTER_LOCAL}, those of another one in a namespace that has the label \
         {LABEL_KUBECONFIG_SECRET}=SECRET"
    )
}
