use common::api::catalogue::HealthCheckExpr;
use common::manifest::key::ObjectKey;
use serde_json::{Value, json};

use super::super::{ReadinessContext, ReadinessStatus, assess_in};
use super::HealthChecks;

use ReadinessStatus::{Current, Failed, InProgress, Terminating};

fn checks(written: &Value) -> HealthChecks {
    let written: Vec<HealthCheckExpr> = serde_json::from_value(written.clone()).unwrap();
    HealthChecks::compile(&written)
}

/// The status and message of an object by the check for its kind.
fn assess(checks: &HealthChecks, object: &Value) -> (ReadinessStatus, String) {
    let key = ObjectKey::from_object(object).unwrap();
    let ctx = ReadinessContext {
        check: checks.find(&key).map(AsRef::as_ref),
        ..ReadinessContext::default()
    };
    let readiness = assess_in(object, &ctx);
    (readiness.status, readiness.message)
}

fn widget(fields: Value) -> Value {
    let mut object = json!({"apiVersion": "x.y/v1", "kind": "Widget", "metadata": {"name": "a"}});
    for (name, value) in fields.as_object().unwrap() {
        match (name.as_str(), value.as_object()) {
            ("metadata", Some(metadata)) => {
                for (name, value) in metadata {
                    object["metadata"][name] = value.clone();
                }
            }
            _ => object[name] = value.clone(),
        }
    }
    object
}

/// The cases of Flux's own evaluator (fluxcd/pkg, runtime/cel). Where it returns an error, it waits, and so do we.
#[test]
fn expressions_mean_what_they_mean_in_flux() {
    let data = json!({"current": "data.current", "inProgress": "data.inProgress", "failed": "data.failed"});
    let by_ready = json!({
        "failed": "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'False')",
        "current": "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')",
    });
    let with_progress = |mut exprs: Value| {
        exprs["inProgress"] = json!(
            "has(status.observedGeneration) && metadata.generation != status.observedGeneration"
        );
        exprs
    };
    let says = |current: bool, in_progress: bool, failed: bool| json!({"data": {"current": current, "inProgress": in_progress, "failed": failed}});
    let misspelt = |field: &str, text: &str| {
        let mut exprs = data.clone();
        exprs[field] = json!(text);
        exprs
    };
    let generations = |generation: Value, observed: Value| json!({"metadata": {"generation": generation}, "status": {"observedGeneration": observed}});
    for (exprs, object, expected) in [
        (
            json!({"current": "true"}),
            generations(json!(2), json!(1)),
            InProgress,
        ),
        (
            json!({"current": "true"}),
            generations(json!(2), json!(2)),
            Current,
        ),
        (
            misspelt("current", "data.currentt"),
            says(true, false, false),
            InProgress,
        ),
        (
            misspelt("inProgress", "data.inProgresss"),
            says(true, false, false),
            InProgress,
        ),
        (
            misspelt("failed", "data.failedd"),
            says(true, false, false),
            InProgress,
        ),
        (data.clone(), says(false, false, false), InProgress),
        (data.clone(), says(true, true, true), InProgress),
        (data.clone(), says(true, false, true), Failed),
        (data.clone(), says(true, false, false), Current),
        (with_progress(by_ready.clone()), json!({}), InProgress),
        (by_ready.clone(), json!({}), InProgress),
        (
            with_progress(by_ready.clone()),
            json!({"status": {}}),
            InProgress,
        ),
        (by_ready.clone(), json!({"status": {}}), InProgress),
        (
            with_progress(by_ready.clone()),
            json!({"status": {"conditions": []}}),
            Failed,
        ),
        (
            by_ready.clone(),
            json!({"status": {"conditions": []}}),
            Failed,
        ),
        (
            with_progress(by_ready.clone()),
            generations(json!(2), json!(1)),
            InProgress,
        ),
        (
            json!({"current": "status.observedGeneration == '2'"}),
            generations(json!(2), json!("2")),
            Current,
        ),
        (
            json!({"current": "metadata.generation == '2'"}),
            generations(json!("2"), json!(2)),
            Current,
        ),
    ] {
        let mut check = exprs.clone();
        check["apiVersion"] = json!("x.y/v1");
        check["kind"] = json!("Widget");
        let found = assess(&checks(&json!([check])), &widget(object.clone()));
        assert_eq!(found.0, expected, "{exprs} {object}: {}", found.1);
    }
}

/// The library of Flux's community: each entry, what its objects say when they are ready and when they failed.
#[test]
fn the_library_of_flux_works_unchanged() {
    let conditions = |r#type: &str, status: &str, reason: &str| {
        let condition =
            json!({"type": r#type, "status": status, "reason": reason, "observedGeneration": 3});
        json!({"conditions": [{"type": "Other", "status": "Unknown"}, condition]})
    };
    let by = |api_version: &str, kind: &str, failing: &str, ready: &str| {
        json!({"apiVersion": api_version, "kind": kind,
            "failed": format!("status.conditions.filter(e, e.type == '{failing}').all(e, e.status == 'False')"),
            "current": format!("status.conditions.filter(e, e.type == '{ready}').all(e, e.status == 'True')")})
    };
    let usual = |api_version: &str, kind: &str, r#type: &str| {
        let (ready, broken) = (
            conditions(r#type, "True", ""),
            conditions(r#type, "False", "No"),
        );
        (
            by(api_version, kind, r#type, r#type),
            ready,
            broken,
            "failed: No",
        )
    };
    let ceph = json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
        "failed": "status.ceph.health == 'HEALTH_ERR'", "current": "status.ceph.health == 'HEALTH_OK'"});
    let of_ceph = |health: &str| json!({"ceph": {"health": health}});
    let role = json!({"apiVersion": "iam.aws.crossplane.io/v1beta1", "kind": "Role",
        "failed": "status.conditions.filter(e, e.type == 'Synced').all(e, e.status == 'False' && e.reason == 'ReconcileError')",
        "current": "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')"});
    let mut of_role = conditions("Ready", "True", "");
    of_role["conditions"][0] = json!({"type": "Synced", "status": "True"});
    // Without a kind, it is for every kind of the group.
    let operator = json!({"apiVersion": "fluxcd.controlplane.io/v1",
        "failed": "status.conditions.exists(e, e.type == 'Stalled' && e.status == 'True' && e.observedGeneration == metadata.generation)",
        "current": "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True' && e.observedGeneration == metadata.generation)"});
    let stalled = conditions("Stalled", "True", "BuildFailed");
    let shown = "failed: BuildFailed";
    for ((check, ready, broken, why), kind) in [
        (
            (
                ceph,
                of_ceph("HEALTH_OK"),
                of_ceph("HEALTH_ERR"),
                "failed: failed holds: status.ceph.health == 'HEALTH_ERR'",
            ),
            "CephCluster",
        ),
        (
            usual("cluster.x-k8s.io/v1beta1", "Cluster", "Ready"),
            "Cluster",
        ),
        (
            usual("cert-manager.io/v1", "ClusterIssuer", "Ready"),
            "ClusterIssuer",
        ),
        (
            usual("external-secrets.io/v1beta1", "ClusterSecretStore", "Ready"),
            "ClusterSecretStore",
        ),
        (
            usual("pkg.crossplane.io/v1", "Provider", "Healthy"),
            "Provider",
        ),
        (
            (
                role,
                of_role,
                conditions("Synced", "False", "ReconcileError"),
                "failed: ReconcileError",
            ),
            "Role",
        ),
        (
            usual("keda.sh/v1alpha1", "ScaledObject", "Ready"),
            "ScaledObject",
        ),
        (
            usual("bitnami.com/v1alpha1", "SealedSecret", "Synced"),
            "SealedSecret",
        ),
        (
            (
                operator.clone(),
                conditions("Ready", "True", ""),
                stalled.clone(),
                shown,
            ),
            "ResourceSet",
        ),
        (
            (operator, conditions("Ready", "True", ""), stalled, shown),
            "FluxInstance",
        ),
    ] {
        let object = |status: &Value| json!({"apiVersion": check["apiVersion"], "kind": kind, "metadata": {"name": "a", "generation": 3}, "status": status});
        let written = checks(&json!([check]));
        assert_eq!(
            assess(&written, &object(&ready)),
            (Current, "ready".to_owned()),
            "{check}"
        );
        let (status, message) = assess(&written, &object(&broken));
        assert_eq!(status, Failed, "{check}: {message}");
        assert!(message.starts_with(why), "{check}: {message}");
        let (status, message) = assess(&written, &object(&Value::Null));
        assert_eq!(status, InProgress, "{check}: {message}");
    }
}

#[test]
fn the_check_of_a_kind_precedes_that_of_its_group() {
    let written = checks(&json!([
        {"apiVersion": "x.y/v1", "current": "false"},
        {"apiVersion": "x.y/v2", "kind": "Widget", "current": "true"},
        {"apiVersion": "v1", "kind": "ConfigMap", "current": "data.ready == 'yes'"},
    ]));
    assert_eq!(assess(&written, &widget(json!({}))).0, Current);
    let mut gadget = widget(json!({}));
    gadget["kind"] = json!("Gadget");
    assert_eq!(
        assess(&written, &gadget),
        (
            InProgress,
            "waiting: current does not hold: false".to_owned()
        )
    );
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"ready": "no"}});
    assert_eq!(assess(&written, &config_map).0, InProgress);
    // A kind without a check is judged as ever.
    let other = json!({"apiVersion": "z/v1", "kind": "Widget", "metadata": {"name": "a"}});
    assert_eq!(assess(&written, &other).0, Current);
}

#[test]
fn what_is_being_deleted_is_not_judged_by_a_check() {
    let written = checks(&json!([{"apiVersion": "x.y/v1", "kind": "Widget", "current": "true"}]));
    let deleted = widget(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(assess(&written, &deleted).0, Terminating);
}

#[test]
fn a_message_says_what_is_missing() {
    let of = |current: &str| {
        let check = json!({"apiVersion": "x.y/v1", "kind": "Widget", "current": current});
        checks(&json!([check]))
    };
    let waiting = json!({"status": {"phase": "Pending", "conditions": [
        {"type": "Ready", "status": "False", "reason": "NoQuota", "message": "2 of 3 volumes"}]}});
    for (current, object, expected) in [
        (
            "status.phase == 'Ready'",
            json!({}),
            "waiting: current: status does not exist",
        ),
        (
            "status.phase == 'Ready'",
            json!({"status": {}}),
            "waiting: current: phase does not exist",
        ),
        (
            "status.phase ==\n  'Up'",
            waiting.clone(),
            "waiting: current does not hold: status.phase == 'Up'",
        ),
        (
            "status.conditions.exists(e, e.type == 'Ready' && e.status == 'True')",
            waiting.clone(),
            "waiting: NoQuota, 2 of 3 volumes",
        ),
        (
            "status.phase ==",
            waiting,
            "waiting: current: it is not a CEL expression: ",
        ),
    ] {
        let (status, message) = assess(&of(current), &widget(object));
        assert_eq!(status, InProgress, "{current}");
        assert!(message.starts_with(expected), "{current}: {message}");
    }
}
