//! Rules for namespaces that stand for a cluster (semantics 6).

use crate::AdmissionFacts;
use crate::marks::GuardMarks;
use crate::verdict::AdmissionProblem;
use common::api::names::{
    ANNOTATION_CLUSTER_DELETING, CLUSTER_LOCAL, ENROL, INSTALLATIONS, LABEL_CLUSTER,
    LABEL_KUBECONFIG_SECRET, is_reserved,
};

/// An installation must be in a namespace that stands for a cluster (semantics 6.1). Otherwise, anyone who may create installations in
/// some namespace could have an administrator's `upgrade` execute them.
#[must_use]
pub fn check_namespace(namespace: &str, facts: &AdmissionFacts) -> Option<AdmissionProblem> {
    if facts.stands_for_cluster(namespace) {
        return None;
    }
    let message = no_cluster_message(namespace, &facts.settings.system_namespace);
    Some(AdmissionProblem::invalid(
        "no-cluster",
        "metadata.namespace",
        message,
    ))
}

/// Nothing is installed while the cluster of the namespace is being deleted (semantics 14.1).
#[must_use]
pub fn check_not_being_deleted(
    namespace: &str,
    facts: &AdmissionFacts,
) -> Option<AdmissionProblem> {
    let marked = facts.namespaces.get(namespace);
    marked.filter(|marks| marks.cluster_deleting).map(|_| {
        AdmissionProblem::forbidden(
            "cluster-deleting",
            "metadata.namespace",
            format!(
                "the cluster of {namespace} is being deleted (annotation {ANNOTATION_CLUSTER_DELETING}): nothing is installed there"
            ),
        )
    })
}

/// Returns the label by which a namespace that is created (`old` = `None`) or changed is enrolled: it begins to stand for a cluster, or
/// for another one (semantics 6.2).
#[must_use]
pub fn enrolling_label(new: &GuardMarks, old: Option<&GuardMarks>) -> Option<&'static str> {
    let value = |label: &str| match (label, new.label(label)) {
        (LABEL_CLUSTER, Some(value)) if value != CLUSTER_LOCAL => None,
        (_, value) => value,
    };
    let is_new = |label: &str| {
        let value = value(label);
        value.is_some() && value != old.and_then(|old| old.label(label))
    };
    [LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET]
        .into_iter()
        .find(|label| is_new(label))
}

/// The problem of a requester who may not enrol namespaces. Enrolling decides whose records are executed, for this cluster even with the
/// rights of whoever runs a command. It therefore needs a right of its own, which roles for records or namespaces do not contain
/// (semantics 6.2).
#[must_use]
pub fn not_entitled(label: &str) -> AdmissionProblem {
    let message = format!(
        "it makes the namespace stand for a cluster, which needs the right to {ENROL} {INSTALLATIONS} in the whole cluster: ask an \
         administrator to set it"
    );
    AdmissionProblem::forbidden(
        "cluster-label",
        format!("metadata.labels[{label}]"),
        message,
    )
}

/// Reserved namespaces never stand for a cluster, whoever enrols them (semantics 6.2).
#[must_use]
pub fn check_reserved(label: &str, namespace: &str) -> Option<AdmissionProblem> {
    is_reserved(namespace).then(|| {
        let message = format!(
            "{namespace} never stands for a cluster: a record there could name the ServiceAccounts of the control plane or of the \
             reconciler; use another namespace"
        );
        AdmissionProblem::forbidden(
            "reserved-namespace",
            format!("metadata.labels[{label}]"),
            message,
        )
    })
}

/// Returns the message about a namespace that does not stand for a cluster. Plugin and webhook share it.
#[must_use]
pub fn no_cluster_message(namespace: &str, system: &str) -> String {
    format!(
        "{namespace} does not stand for a cluster: installations of this cluster belong in {system}, or in a namespace that \
         has the label {LABEL_CLUSTER}={CLUSTER_LOCAL}, those of another one in a namespace that has the label \
         {LABEL_KUBECONFIG_SECRET}=SECRET"
    )
}
