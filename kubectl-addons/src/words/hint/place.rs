//! For a namespace that stands for no cluster, or for another one than its kubeconfig leads to.

use common::api::names::{CLUSTER_LOCAL, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET};

use super::{fix, look};

/// For a namespace that stands for no cluster. `holds_old`: of the records in it, `init` may move some.
pub(super) fn of_namespace(namespace: &str, holds_old: bool) -> Vec<String> {
    let way_out = match holds_old {
        true => "kubectl addons init, which moves installations of older versions".to_owned(),
        false => format!(
            "--target-namespace {namespace}, for the objects of an add-on; -n is for its record"
        ),
    };
    of_place(namespace, fix(&way_out))
}

/// For a namespace in which no record may be, beside what else is a way out.
pub(super) fn of_place(namespace: &str, fixes: Vec<String>) -> Vec<String> {
    let label = format!("{LABEL_CLUSTER}={CLUSTER_LOCAL}");
    let mut lines = look(&format!("kubectl get namespaces -l {label}"));
    lines.extend(fixes);
    lines.push(format!(
        "accept: kubectl label namespace {namespace} {label}"
    ));
    lines
}

/// For a namespace whose kubeconfig leads to the cluster that the namespace is in.
pub(super) fn of_own_cluster(namespace: &str) -> Vec<String> {
    let labels = format!("{LABEL_CLUSTER}={CLUSTER_LOCAL} {LABEL_KUBECONFIG_SECRET}-");
    fix(&format!("kubectl label namespace {namespace} {labels}"))
}
