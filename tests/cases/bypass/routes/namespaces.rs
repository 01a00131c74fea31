//! Through the namespaces of records and of objects.

use common::api::names::{
    ANNOTATION_CLUSTER_DELETING, CLUSTER_LOCAL, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET,
    SYSTEM_NAMESPACE,
};
use serde_json::{Value, json};

use super::{closed, open};
use crate::bypass::table::{Body, Route, Who};
use crate::bypass::world::{EMPTY, TARGET, TENANT};

fn of(name: &str) -> String {
    format!("/api/v1/namespaces/{name}")
}

fn marked(value: &str) -> Value {
    json!({"metadata": {"annotations": {ANNOTATION_CLUSTER_DELETING: value}}})
}

fn labelled(name: &str, value: Value) -> Value {
    json!({"metadata": {"labels": {name: value}}})
}

pub fn routes() -> Vec<Route> {
    let created = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "made", "annotations": {ANNOTATION_CLUSTER_DELETING: "true"}},
    });
    let merge = |value: Value| Body::Merge(value);
    let finalize = |name: &str, value: Value| Body::Replace(of(name), value);
    let sub = |name: &str, sub: &str| format!("{}/{sub}", of(name));
    let local = || labelled(LABEL_CLUSTER, json!(CLUSTER_LOCAL));
    let admin = Who::Admin;
    vec![
        closed(
            "delete the namespace of core records",
            admin,
            of(SYSTEM_NAMESPACE),
            Body::Delete,
        ),
        closed(
            "delete a namespace whose core record came by GitOps",
            admin,
            of(TENANT),
            Body::Delete,
        ),
        closed(
            "delete the target namespace of a core add-on",
            admin,
            of(TARGET),
            Body::Delete,
        ),
        closed(
            "mark a namespace as going with its cluster",
            admin,
            of(TENANT),
            merge(marked("true")),
        ),
        closed(
            "the same by namespaces/status",
            admin,
            sub(TENANT, "status"),
            merge(marked("true")),
        ),
        closed(
            "the same by namespaces/finalize",
            admin,
            sub(TENANT, "finalize"),
            finalize(TENANT, marked("true")),
        ),
        closed(
            "the same on the system namespace",
            admin,
            of(SYSTEM_NAMESPACE),
            merge(marked("true")),
        ),
        closed(
            "create a namespace with the mark",
            admin,
            "/api/v1/namespaces".to_owned(),
            Body::Create(created),
        ),
        closed(
            "a namespace stands for no cluster any more",
            admin,
            of(TENANT),
            merge(labelled(LABEL_CLUSTER, Value::Null)),
        ),
        closed(
            "the same by namespaces/status",
            admin,
            sub(TENANT, "status"),
            merge(labelled(LABEL_CLUSTER, Value::Null)),
        ),
        closed(
            "stand for this cluster, without the right",
            Who::Tenant,
            of(TARGET),
            merge(local()),
        ),
        closed(
            "the same by namespaces/status",
            Who::Tenant,
            sub(TARGET, "status"),
            merge(local()),
        ),
        closed(
            "the same by namespaces/finalize",
            Who::Tenant,
            sub(TARGET, "finalize"),
            finalize(TARGET, local()),
        ),
        open(
            "delete a namespace that holds nothing",
            admin,
            of(EMPTY),
            Body::Delete,
        ),
        open(
            "mark it with a value that means nothing",
            admin,
            of(TENANT),
            merge(marked("false")),
        ),
        open(
            "change a label that is not ours",
            admin,
            of(TENANT),
            merge(labelled("team", json!("a"))),
        ),
        open(
            "stand for another cluster",
            admin,
            of(TARGET),
            merge(labelled(LABEL_KUBECONFIG_SECRET, json!("a"))),
        ),
        open(
            "core marks a namespace as going",
            Who::Core,
            of(TENANT),
            merge(marked("true")),
        ),
        open(
            "break-glass marks it",
            Who::Glass,
            of(TENANT),
            merge(marked("true")),
        ),
        open(
            "break-glass deletes the namespace",
            Who::Glass,
            of(TENANT),
            Body::Delete,
        ),
    ]
}
