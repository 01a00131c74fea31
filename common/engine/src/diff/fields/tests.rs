use serde_json::json;

use super::*;

fn lines(changes: &[FieldChange]) -> Vec<String> {
    let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
    let owner = |owner: &FieldOwner| match &owner.since {
        Some(since) => format!("{} {since}", owner.manager),
        None => owner.manager.clone(),
    };
    let line = |change: &FieldChange| {
        let owners: Vec<String> = change.owners.iter().map(owner).collect();
        format!(
            "{} {} {} [{}]",
            change.path,
            text(&change.old),
            text(&change.new),
            owners.join(", ")
        )
    };
    changes.iter().map(line).collect()
}

#[test]
fn fields_their_values_and_their_owners() {
    let live = json!({
        "metadata": {"resourceVersion": "1", "generation": 1, "labels": {"app.kubernetes.io/name": "a", "kubectl-addons.dev/owner": "x"},
            "managedFields": [
                {"manager": "ours", "fieldsV1": {"f:spec": {"f:paused": {}}}},
                {"manager": "kubectl-scale", "time": "2026-11-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {},
                    "f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}}}, "f:args": {}}}},
                {"manager": "operator", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]},
        "spec": {"replicas": 5, "paused": true, "args": ["a", "b"],
            "containers": [{"name": "old"}, {"name": "web", "image": "web:1"}]},
        "status": {"replicas": 5},
    });
    let wanted = json!({
        "metadata": {"resourceVersion": "2", "generation": 2, "labels": {"app.kubernetes.io/name": "b"}},
        "spec": {"replicas": 2, "args": ["a"],
            "containers": [{"name": "web", "image": "web:2"}, {"name": "new"}]},
    });
    assert_eq!(
        lines(&compare(&live, &wanted, "ours", false)),
        [
            r#"metadata.labels["app.kubernetes.io/name"] "a" "b" []"#,
            r#"spec.args[1] "b" - [kubectl-scale 2026-11-01T00:00:00Z]"#,
            r#"spec.containers[new] - {"name":"new"} []"#,
            r#"spec.containers[old] {"name":"old"} - []"#,
            r#"spec.containers[web].image "web:1" "web:2" [kubectl-scale 2026-11-01T00:00:00Z]"#,
            "spec.paused true - []",
            "spec.replicas 5 2 [kubectl-scale 2026-11-01T00:00:00Z, operator]",
        ]
    );
}

/// Our marks are not a change, also of an object that had neither labels nor annotations.
#[test]
fn marks_of_ours_do_not_count() {
    let live = json!({"metadata": {"name": "a"}, "data": {"key": "1"}});
    let marks = json!({"kubectl-addons.dev/owner": "x"});
    let wanted = json!({"metadata": {"name": "a", "labels": marks,
        "annotations": {"kubectl-addons.dev/installation": "shop/web", "team": "shop"}}, "data": {"key": "1"}});
    assert_eq!(
        lines(&compare(&live, &wanted, "ours", false)),
        [r#"metadata.annotations.team - "shop" []"#]
    );
}

/// Lists whose items have no name: identified by other keys, else by place; sets by value.
#[test]
fn items_without_a_name() {
    let live = json!({
        "metadata": {"finalizers": ["a/x", "b/y"], "managedFields": [
            {"manager": "mesh", "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"b/y\"": {}}}, "f:spec": {"f:ports": {
                "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {"f:hostPort": {}}}}}}]},
        "spec": {"ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 80, "protocol": "TCP", "hostPort": 1}],
            "rules": [{"a": 1}, {"a": 2}]},
    });
    let wanted = json!({
        "metadata": {"finalizers": ["a/x"]},
        "spec": {"ports": [{"containerPort": 80, "protocol": "TCP", "hostPort": 2}, {"containerPort": 53, "protocol": "UDP"}],
            "rules": [{"a": 1}, {"a": 3}]},
    });
    assert_eq!(
        lines(&compare(&live, &wanted, "ours", false)),
        [
            r#"metadata.finalizers[b/y] "b/y" - [mesh]"#,
            "spec.ports[80/TCP].hostPort 1 2 [mesh]",
            "spec.rules[1].a 2 3 []",
        ]
    );
}

/// The server says by which keys a list is merged, in what it records of managers: also of kinds that no client knows.
#[test]
fn items_as_the_server_merges_them() {
    let ours = json!([{"manager": "ours", "fieldsV1": {"f:spec": {
        "f:spread": {"k:{\"topologyKey\":\"zone\",\"whenUnsatisfiable\":\"DoNotSchedule\"}": {}},
        "f:zones": {"v:\"b\"": {}, "v:\"c\"": {}}, "f:whole": {}}}}]);
    let spread = |key: &str, skew: u64| json!({"topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": skew});
    let live = json!({"metadata": {}, "spec": {"spread": [spread("zone", 1), spread("node", 1)],
        "zones": ["a", "b"], "whole": ["a", "b"]}});
    let wanted = json!({"metadata": {"managedFields": ours}, "spec": {"spread": [spread("node", 1), spread("zone", 2)],
        "zones": ["c", "b"], "whole": ["b"]}});
    assert_eq!(
        lines(&compare(&live, &wanted, "ours", false)),
        [
            "spec.spread[zone/DoNotSchedule].maxSkew 1 2 []",
            // The first item is removed; the other one only moves.
            r#"spec.whole[0] "a" - []"#,
            r#"spec.zones[a] "a" - []"#,
            r#"spec.zones[c] - "c" []"#,
        ]
    );
}

#[test]
fn values_of_secrets_are_masked() {
    let live = json!({"data": {"password": "aHVudGVyMg=="}, "type": "Opaque",
        "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "aHVudGVyMg==", "a": "1"}}});
    let wanted = json!({"data": {"password": "aHVudGVyMw==", "more": "eA=="}, "type": "Opaque",
        "metadata": {"annotations": {"a": "2"}}});
    let changes = compare(&live, &wanted, "ours", true);
    assert_eq!(
        lines(&changes),
        [
            r#"data.more - "***" []"#,
            r#"data.password "***" "***" []"#,
            r#"metadata.annotations.a "1" "2" []"#,
            r#"metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"] "***" - []"#,
        ]
    );
    for other in [json!({"data": null}), json!({"metadata": {}}), json!({})] {
        let changes = compare(&live, &other, "ours", true);
        assert!(!format!("{changes:?}").contains("aHVu"), "{other}");
    }
}
