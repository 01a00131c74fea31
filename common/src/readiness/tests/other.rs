//! Every other kind.

use serde_json::{Value, json};

use super::Status::{Current, Failed, InProgress, Terminating};
use super::{c, check};

#[test]
fn extensions() {
    let crd = |conditions: Value| json!({"status": {"conditions": conditions}});
    let kind = "apiextensions.k8s.io/CustomResourceDefinition";
    check(
        kind,
        crd(json!([
            c("NamesAccepted", "True", "", ""),
            c("Established", "True", "", "")
        ])),
        Current,
        "established",
    );
    check(
        kind,
        crd(json!([c("NamesAccepted", "False", "Conflict", "taken")])),
        Failed,
        "names not accepted: Conflict, taken",
    );
    check(
        kind,
        crd(json!([c("Established", "False", "Installing", "")])),
        InProgress,
        "waiting: not yet established",
    );
    check(
        kind,
        crd(json!([c("Established", "False", "NotAccepted", "")])),
        Failed,
        "not established: NotAccepted",
    );
    check(kind, json!({}), InProgress, "waiting: not yet established");
    let kind = "apiregistration.k8s.io/APIService";
    check(
        kind,
        crd(json!([c("Available", "True", "Passed", "")])),
        Current,
        "available",
    );
    let dead = crd(json!([c(
        "Available",
        "False",
        "FailedDiscoveryCheck",
        "no endpoints"
    )]));
    check(
        kind,
        dead,
        InProgress,
        "waiting: FailedDiscoveryCheck, no endpoints",
    );
    check(
        kind,
        json!({}),
        InProgress,
        "waiting: not yet checked by the API server",
    );
}

#[test]
fn phases_and_addresses() {
    let phase = |phase: &str| json!({"status": {"phase": phase}});
    check("Namespace", phase("Active"), Current, "active");
    check(
        "Namespace",
        phase("Terminating"),
        Terminating,
        "being deleted",
    );
    check(
        "Namespace",
        json!({}),
        InProgress,
        "waiting: not yet active",
    );
    let claim = "PersistentVolumeClaim";
    check(claim, phase("Bound"), Current, "bound");
    check(claim, phase("Lost"), Failed, "lost: its volume is gone");
    check(claim, phase("Pending"), Current, "bound when a pod uses it");
    check(claim, json!({}), InProgress, "waiting: not yet bound");
    let placed = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}, "status": {"phase": "Pending"}});
    check(claim, placed, InProgress, "waiting: not yet bound");
    check(
        claim,
        json!({"spec": {"storageClassName": ""}, "status": {"phase": "Pending"}}),
        InProgress,
        "waiting: not yet bound",
    );
    check("PersistentVolume", phase("Available"), Current, "available");
    let failed = json!({"status": {"phase": "Failed", "message": "no plugin"}});
    check("PersistentVolume", failed, Failed, "failed: no plugin");
    check(
        "Service",
        json!({"spec": {"type": "ClusterIP"}}),
        Current,
        "ready",
    );
    check(
        "Service",
        json!({"spec": {"type": "ExternalName"}}),
        Current,
        "ready",
    );
    check(
        "Service",
        json!({"spec": {"type": "LoadBalancer"}}),
        InProgress,
        "waiting: no cluster IP yet",
    );
    let balanced = json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}});
    check(
        "Service",
        balanced.clone(),
        Current,
        "ready, no load balancer address yet",
    );
    let mut with_address = balanced;
    with_address["status"] = json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}});
    check("Service", with_address, Current, "ready");
}

#[test]
fn conditions_that_kops_judges() {
    let with = |conditions: &[(&str, &str)]| {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(kind, status)| c(kind, status, "R", ""))
            .collect();
        json!({"status": {"conditions": conditions}})
    };
    check("x.y/Widget", json!({}), Current, "ready");
    check(
        "x.y/Widget",
        json!({"status": {"conditions": null}}),
        Current,
        "ready",
    );
    check(
        "x.y/Widget",
        with(&[("Ready", "True"), ("Progressing", "False")]),
        Current,
        "ready",
    );
    check(
        "x.y/Widget",
        with(&[("Ready", "Unknown")]),
        InProgress,
        "waiting: R",
    );
    check(
        "x.y/Widget",
        with(&[("Available", "False")]),
        InProgress,
        "waiting: R",
    );
    check("x.y/Widget", with(&[("Paused", "False")]), Current, "ready");
    let gateway = "gateway.networking.k8s.io/Gateway";
    check(
        gateway,
        with(&[("Accepted", "True"), ("Programmed", "True")]),
        Current,
        "programmed",
    );
    check(
        gateway,
        with(&[("Accepted", "True"), ("Programmed", "False")]),
        InProgress,
        "waiting: R",
    );
    check(
        "gateway.networking.k8s.io/GatewayClass",
        with(&[("Accepted", "False")]),
        InProgress,
        "waiting: R",
    );
    check(
        "Node",
        with(&[("MemoryPressure", "False"), ("Ready", "True")]),
        Current,
        "ready",
    );
    let scaled = "keda.sh/ScaledObject";
    check(
        scaled,
        with(&[
            ("Ready", "True"),
            ("Active", "False"),
            ("Fallback", "False"),
        ]),
        Current,
        "ready",
    );
    check(
        scaled,
        with(&[("Ready", "False")]),
        InProgress,
        "waiting: R",
    );
    check("ConfigMap", json!({"data": {}}), Current, "ready");
    let stale = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}});
    check(
        "x.y/Widget",
        stale,
        InProgress,
        "waiting: not yet seen by its controller",
    );
}
