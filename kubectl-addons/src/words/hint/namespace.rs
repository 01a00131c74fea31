//! Advice if `-n` names a namespace that holds no records of this cluster, or one whose kubeconfig leads back to this cluster.

use addons_operation::not_local::NotLocal;
use common::api::names::{CLUSTER_LOCAL, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET, is_reserved};

use super::{fix_line, look_line, typed};

/// Advice for a namespace that stands for no cluster.
pub(super) fn namespace_hints(found: &NotLocal) -> Vec<String> {
    let NotLocal {
        asked: namespace,
        system,
        ..
    } = found;
    if typed::takes_flag("--target-namespace") {
        let objects = fix_line(&format!(
            "--target-namespace {namespace}, for the objects of an add-on; -n is for its record"
        ));
        if !found.exists || is_reserved(namespace) {
            // A missing namespace has no labels, and is created with the add-on's objects. Reserved ones never stand for a cluster.
            return objects;
        }
        let label = format!("{LABEL_CLUSTER}={CLUSTER_LOCAL}");
        let mut lines = look_line(&format!("kubectl get namespaces -l {label}"));
        lines.extend(objects);
        lines.push(format!(
            "accept: kubectl label namespace {namespace} {label}"
        ));
        return lines;
    }
    // A label would not help: the record of an installation is in another namespace.
    let mut lines = look_line(&format!("kubectl addons list -n {system}"));
    lines.extend(fix_line(&format!(
        "leave out -n {namespace}: it names the namespace of the record, and records of this cluster are in {system}"
    )));
    lines
}

/// Advice for a namespace whose kubeconfig leads to the cluster that the namespace is in.
pub(super) fn own_cluster_hints(namespace: &str) -> Vec<String> {
    let labels = format!("{LABEL_CLUSTER}={CLUSTER_LOCAL} {LABEL_KUBECONFIG_SECRET}-");
    fix_line(&format!("kubectl label namespace {namespace} {labels}"))
}
