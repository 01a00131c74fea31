//! Every other kind.

use serde_json::{Value, json};

use super::ReadinessStatus::{Current, Failed, InProgress, Terminating};
use super::{ContextNeed, ReadinessContext, at, c, check, check_in, find_context_need, object};

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
        json!({
            "spec": {"names": {"kind": "Pool", "plural": "pools", "singular": "pool"}},
            "status": {"acceptedNames": {"kind": "Pool", "plural": "pools", "singular": "basin"}, "conditions": [
                c("NamesAccepted", "False", "SingularConflict", "taken"),
                c("Established", "True", "", ""),
            ]},
        }),
        Current,
        "established; a name is not accepted: SingularConflict, taken",
    );
    check(
        kind,
        json!({
            "spec": {"names": {"kind": "Pool", "plural": "pools"}},
            "status": {"acceptedNames": {"kind": "Basin", "plural": "pools"}, "conditions": [
                c("NamesAccepted", "False", "KindConflict", "taken"),
                c("Established", "True", "", ""),
            ]},
        }),
        Failed,
        "names not accepted: KindConflict, taken",
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

/// Conditions by type and status.
fn with(conditions: &[(&str, &str)]) -> Value {
    let conditions: Vec<_> = conditions
        .iter()
        .map(|(kind, status)| c(kind, status, "R", ""))
        .collect();
    json!({"status": {"conditions": conditions}})
}

/// Verdicts of kops on other objects, where an object that is not healthy waits. Its rows on Deployments are in
/// `workload`; a row that kstatus judges differently says so.
#[test]
fn conditions_that_kops_judges() {
    let gateway = "gateway.networking.k8s.io/Gateway";
    let class = "gateway.networking.k8s.io/GatewayClass";
    let crd = "apiextensions.k8s.io/CustomResourceDefinition";
    let accepted = [("Accepted", "True"), ("Programmed", "True")];
    let not_programmed = [("Accepted", "True"), ("Programmed", "False")];
    let pressures = [
        ("MemoryPressure", "False"),
        ("DiskPressure", "False"),
        ("PIDPressure", "False"),
        ("Ready", "True"),
    ];
    let scaled = [
        ("Ready", "True"),
        ("Active", "False"),
        ("Fallback", "False"),
        ("Paused", "False"),
    ];
    let served = [("Established", "True"), ("NamesAccepted", "True")];
    for (kind, parts, status, message) in [
        ("x.y/Widget", json!({}), Current, "ready"),
        (
            "x.y/Widget",
            json!({"status": {"conditions": null}}),
            Current,
            "ready",
        ),
        (
            "x.y/Widget",
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            Terminating,
            "being deleted",
        ),
        (
            "x.y/Widget",
            with(&[("Ready", "True"), ("Progressing", "False")]),
            Current,
            "ready",
        ),
        ("x.y/Widget", with(&[("Paused", "False")]), Current, "ready"),
        (gateway, with(&accepted), Current, "programmed"),
        // kstatus knows no Gateway: Current.
        (gateway, with(&not_programmed), InProgress, "waiting: R"),
        (
            gateway,
            with(&[("Accepted", "False")]),
            InProgress,
            "waiting: R",
        ),
        (
            class,
            with(&[("Accepted", "False")]),
            InProgress,
            "waiting: R",
        ),
        (class, with(&[("Accepted", "True")]), Current, "accepted"),
        ("Node", with(&pressures), Current, "ready"),
        ("keda.sh/ScaledObject", with(&scaled), Current, "ready"),
        (
            "keda.sh/ScaledObject",
            with(&[("Ready", "False")]),
            InProgress,
            "waiting: R",
        ),
        (crd, with(&served), Current, "established"),
        (
            crd,
            with(&[("NamesAccepted", "False")]),
            Failed,
            "names not accepted: R",
        ),
        ("ConfigMap", json!({"data": {}}), Current, "ready"),
    ] {
        check(kind, parts, status, message);
    }
}

#[test]
fn conditions_that_others_judge() {
    let stale = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}});
    let hpa = "autoscaling/HorizontalPodAutoscaler";
    let pdb = "policy/PodDisruptionBudget";
    for (kind, parts, status, message) in [
        (
            "x.y/Widget",
            with(&[("Ready", "Unknown")]),
            InProgress,
            "waiting: R",
        ),
        (
            "x.y/Widget",
            with(&[("Available", "False")]),
            InProgress,
            "waiting: R",
        ),
        (
            "x.y/Widget",
            stale,
            InProgress,
            "waiting: not yet seen by its controller",
        ),
        (
            hpa,
            with(&[("AbleToScale", "False")]),
            InProgress,
            "waiting: R",
        ),
        // Without metrics it does not scale; that is not a reason to call the add-on broken.
        (
            hpa,
            with(&[("AbleToScale", "True"), ("ScalingActive", "False")]),
            Current,
            "ready",
        ),
        // A budget that allows no disruption is working, not broken.
        (
            pdb,
            json!({"status": {"observedGeneration": 2, "conditions": [c("DisruptionAllowed", "False", "R", "")]}}),
            Current,
            "ready",
        ),
        // Argo CD waits for an address, which many clusters never give.
        (
            "networking.k8s.io/Ingress",
            json!({"status": {"loadBalancer": {}}}),
            Current,
            "ready",
        ),
        ("batch/CronJob", json!({"status": {}}), Current, "ready"),
        ("Secret", json!({}), Current, "ready"),
    ] {
        check(kind, parts, status, message);
    }
}

/// A custom resource whose controller has not seen it yet has no status.
#[test]
fn a_custom_resource_gets_a_moment_to_be_reported_on() {
    let made = |status: Value| json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "status": status});
    let at = |clock| ReadinessContext {
        now: Some(at(clock)),
        has_status: true,
        ..ReadinessContext::default()
    };
    let kind = "x.y/Widget";
    let late = "ready, no status after 10 s";
    for (status, clock, expected, message) in [
        (
            Value::Null,
            "00:00:00",
            InProgress,
            "waiting: no status yet",
        ),
        (json!({}), "00:00:09", InProgress, "waiting: no status yet"),
        (json!({}), "00:00:10", Current, late),
        (Value::Null, "12:00:00", Current, late),
        (json!({"phase": "Pending"}), "00:00:01", Current, "ready"),
        (
            json!({"conditions": [c("Ready", "False", "R", "")]}),
            "00:00:01",
            InProgress,
            "waiting: R",
        ),
    ] {
        check_in(kind, made(status), &at(clock), expected, message);
    }
    let without = ReadinessContext {
        has_status: false,
        ..at("00:00:00")
    };
    check_in(kind, made(json!({})), &without, Current, "ready");
    assert_eq!(
        find_context_need(&object(kind, json!({}))),
        Some(ContextNeed::HasStatus)
    );
    assert_eq!(
        find_context_need(&object(kind, with(&[("Ready", "False")]))),
        None
    );
    assert_eq!(
        find_context_need(&object("networking.k8s.io/Ingress", json!({}))),
        None
    );
}
