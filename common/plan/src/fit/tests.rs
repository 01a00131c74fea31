use serde_json::json;

use super::*;

const OURS: &str = "kubectl-addons.ours";

fn key(group: &str, kind: &str) -> ObjectKey {
    ObjectKey {
        group: group.to_owned(),
        kind: kind.to_owned(),
        ..ObjectKey::default()
    }
}

/// A live object whose fields these managers own.
fn live(object: Value, managers: &[(&str, Value)]) -> Value {
    let mut object = object;
    let entries = managers.iter().map(|(manager, fields)| {
        let operation = if *manager == OURS { "Apply" } else { "Update" };
        json!({"manager": manager, "operation": operation, "time": "2026-11-21T12:00:00Z", "fieldsV1": fields})
    });
    object["metadata"]["managedFields"] = entries.collect();
    object
}

fn fitted(key: &ObjectKey, wanted: Value, live: &Value) -> FittedObject {
    fit(key, &Arc::new(wanted), &Policy::default(), live, OURS)
}

fn fields(fitted: &FittedObject) -> Vec<String> {
    let claims = fitted.claimed_paths();
    claims.iter().map(ToString::to_string).collect()
}

#[test]
fn the_default_of_a_former_strategy_goes() {
    let deployment = key("apps", "Deployment");
    let defaulted = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}}});
    let found = live(
        defaulted.clone(),
        &[(OURS, json!({"f:spec": {"f:replicas": {}}}))],
    );
    let wanted = json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}});
    let fitted_one = fitted(&deployment, wanted.clone(), &found);
    assert_eq!(fields(&fitted_one), ["spec.strategy.rollingUpdate"]);
    assert_eq!(fitted_one.leftovers[0].owners, []);
    // What is asked before the claim is valid, and so is what comes after it.
    let mut answer = fitted_one.bridge(&found);
    assert_eq!(answer["spec"]["strategy"], defaulted["spec"]["strategy"]);
    fitted_one.apply_bridged_groups(&mut answer);
    assert_eq!(answer["spec"]["strategy"]["type"], "Recreate");
    assert!(answer["spec"]["strategy"]["rollingUpdate"].is_null());
    // It says who set it.
    let theirs = json!({"f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}}}}});
    let edited = live(defaulted.clone(), &[("kubectl-edit", theirs)]);
    let fitted_two = fitted(&deployment, wanted.clone(), &edited);
    assert_eq!(fitted_two.leftovers[0].owners[0].0, "kubectl-edit");
    // What is ours alone goes with the apply, and what the manifest leaves open stays.
    let ours = json!({"f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}}}}});
    let own = live(defaulted.clone(), &[(OURS, ours)]);
    assert_eq!(
        fields(&fitted(&deployment, wanted, &own)),
        Vec::<String>::new()
    );
    let open = fitted(&deployment, json!({"spec": {}}), &found);
    assert_eq!(fields(&open), Vec::<String>::new());
}

#[test]
#[rustfmt::skip]
fn the_other_half_of_a_union_in_a_pod_goes() {
    let template = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let container = |container: Value| template(json!({"containers": [container]}));
    let pod = "spec.template.spec";
    let web = "spec.template.spec.containers[name=\"web\"]";
    for (found, wanted, expected) in [
        (template(json!({"volumes": [{"name": "a", "emptyDir": {}}]})), template(json!({"volumes": [{"name": "a", "configMap": {"name": "b"}}]})),
            vec![format!("{pod}.volumes[name=\"a\"].emptyDir")]),
        (template(json!({"volumes": [{"name": "a", "emptyDir": {}}]})), template(json!({"volumes": [{"name": "a"}]})), vec![]),
        (container(json!({"name": "web", "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 10}})),
            container(json!({"name": "web", "livenessProbe": {"tcpSocket": {"port": 80}}})), vec![format!("{web}.livenessProbe.httpGet")]),
        (container(json!({"name": "web", "env": [{"name": "A", "value": "1"}]})),
            container(json!({"name": "web", "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}]})),
            vec![format!("{web}.env[name=\"A\"].value")]),
        (container(json!({"name": "web", "image": "a:latest", "imagePullPolicy": "Always"})), container(json!({"name": "web", "image": "a:1"})),
            vec![format!("{web}.imagePullPolicy")]),
        (container(json!({"name": "web", "image": "a", "imagePullPolicy": "Always"})), container(json!({"name": "web", "image": "r:5000/a"})), vec![]),
        (template(json!({"serviceAccount": "a", "serviceAccountName": "a"})), template(json!({})),
            vec![format!("{pod}.serviceAccountName"), format!("{pod}.serviceAccount")]),
        (template(json!({"serviceAccount": "a", "serviceAccountName": "a"})), template(json!({"serviceAccountName": "b"})), vec![]),
    ] {
        let found = live(found, &[]);
        assert_eq!(fields(&fitted(&key("apps", "DaemonSet"), wanted.clone(), &found)), expected, "{wanted}");
    }
    // An account that another manager gave the pods stays theirs.
    let account = json!({"serviceAccount": "a", "serviceAccountName": "a"});
    let theirs = json!({"f:spec": {"f:template": {"f:spec": {"f:serviceAccountName": {}}}}});
    let found = live(template(account), &[("kubectl-edit", theirs)]);
    assert_eq!(fields(&fitted(&key("apps", "DaemonSet"), template(json!({})), &found)), Vec::<String>::new());
}

#[test]
fn a_conversion_goes_with_the_bundle_that_was_injected() {
    let definition = key("apiextensions.k8s.io", "CustomResourceDefinition");
    let conversion =
        json!({"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": "Q0E="}}});
    let ours = json!({"f:spec": {"f:conversion": {"f:strategy": {}, "f:webhook": {"f:conversionReviewVersions": {}}}}});
    let theirs =
        json!({"f:spec": {"f:conversion": {"f:webhook": {"f:clientConfig": {"f:caBundle": {}}}}}});
    let found = live(
        json!({"spec": {"group": "a", "conversion": conversion}}),
        &[(OURS, ours), ("manager", theirs.clone())],
    );
    for wanted in [
        json!({"spec": {"group": "a"}}),
        json!({"spec": {"group": "a", "conversion": {"strategy": "None"}}}),
    ] {
        let fitted = fitted(&definition, wanted.clone(), &found);
        assert_eq!(fields(&fitted), ["spec.conversion.webhook"], "{wanted}");
        assert!(fitted.leftovers[0].is_ours_to_drop);
        let mut answer = fitted.bridge(&found);
        assert_eq!(answer["spec"]["conversion"], conversion);
        fitted.apply_bridged_groups(&mut answer);
        assert_eq!(answer["spec"], wanted["spec"]);
    }
    let webhook = json!({"spec": {"conversion": {"strategy": "Webhook"}}});
    assert_eq!(
        fields(&fitted(&definition, webhook, &found)),
        Vec::<String>::new()
    );
    // An operator switched it on.
    let found = live(
        json!({"spec": {"conversion": conversion}}),
        &[("manager", theirs)],
    );
    assert_eq!(
        fields(&fitted(&definition, json!({"spec": {}}), &found)),
        Vec::<String>::new()
    );
}

#[test]
fn keys_that_were_applied_as_string_data_go() {
    let secret = key("", "Secret");
    let ours = json!({"f:stringData": {"f:a": {}, "f:b": {}}, "f:data": {"f:e": {}}});
    let theirs = json!({"f:data": {"f:c": {}}});
    let flux = json!({"f:stringData": {"f:d": {}}});
    let data = json!({"a": "x", "b": "x", "c": "x", "d": "x", "e": "x"});
    let found = live(
        json!({"data": data}),
        &[(OURS, ours), ("operator", theirs), ("flux", flux)],
    );
    let fitted = fitted(&secret, json!({"data": {"a": "eA=="}}), &found);
    assert_eq!(fields(&fitted), ["data.b"]);
}

#[test]
fn what_only_grows_is_left() {
    let claim = key("", "PersistentVolumeClaim");
    let size = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
    let set = json!({"f:spec": {"f:resources": {"f:requests": {"f:storage": {}}}}});
    for (manager, sent) in [("kubectl-patch", json!({})), (OURS, size("2Gi"))] {
        let found = live(size("2Gi"), &[(manager, set.clone())]);
        let fitted_one = fitted(&claim, size("1Gi"), &found);
        assert_eq!(*fitted_one.object, sent, "{manager}");
        assert_eq!(fitted_one.kept.len(), 1);
        let grows = fitted(&claim, size("3Gi"), &found);
        assert_eq!((*grows.object).clone(), size("3Gi"));
    }
    let account = key("", "ServiceAccount");
    let secrets = |names: &[&str]| {
        let secrets: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"imagePullSecrets": secrets})
    };
    let found = live(
        secrets(&["reg", "web-dockercfg-x1"]),
        &[("openshift", json!({"f:imagePullSecrets": {}}))],
    );
    assert_eq!(
        *fitted(&account, secrets(&["reg"]), &found).object,
        json!({})
    );
    // One that the manifest dropped is not the platform's.
    let found = live(secrets(&["reg", "old"]), &[]);
    assert_eq!(
        *fitted(&account, secrets(&["reg"]), &found).object,
        secrets(&["reg"])
    );
}

/// A selector cannot change: what kapp added to it stays, and a changed selector is still refused by the server.
#[test]
fn the_label_of_kapp_stays_in_a_selector() {
    let deployment = key("apps", "Deployment");
    let selector = |labels: Value| json!({"spec": {"selector": {"matchLabels": labels}}});
    let found = selector(json!({"app": "web", "kapp.k14s.io/app": "17"}));
    let set = json!({"f:spec": {"f:selector": {}}});
    let wanted = selector(json!({"app": "web"}));
    for (manager, sent) in [("kapp", json!({})), (OURS, found.clone())] {
        let live = live(found.clone(), &[(manager, set.clone())]);
        let kept = fitted(&deployment, wanted.clone(), &live);
        assert_eq!(*kept.object, sent, "{manager}");
        assert_eq!(kept.kept.len(), 1);
    }
    let live = live(found, &[("kapp", set)]);
    let other = selector(json!({"app": "other"}));
    assert_eq!(*fitted(&deployment, other.clone(), &live).object, other);
}

#[test]
fn replicas_that_were_scaled_to_zero_are_left_where_they_yield() {
    let deployment = key("apps", "Deployment");
    let wanted = Arc::new(json!({"spec": {"replicas": 2}}));
    let none = json!({"f:spec": {"f:template": {}}});
    let found = live(json!({"spec": {"replicas": 0}}), &[(OURS, none)]);
    for (policy, sent) in [
        (Policy::default(), 1),
        (
            Policy {
                conflicts: ConflictPolicy::Yield,
                ..Policy::default()
            },
            0,
        ),
        (
            Policy {
                autoscaler: Some("HorizontalPodAutoscaler web".to_owned()),
                ..Policy::default()
            },
            0,
        ),
    ] {
        let fitted = fit(&deployment, &wanted, &policy, &found, OURS);
        let is_sent = fitted.object["spec"].get("replicas").is_some();
        assert_eq!(usize::from(is_sent), sent, "{policy:?}");
    }
}

#[test]
fn a_headless_service_stays_one() {
    let service = key("", "Service");
    let found = live(json!({"spec": {"clusterIP": "None"}}), &[]);
    let fixed = |wanted: Value, found: &Value| fitted(&service, wanted, found).fixed.len();
    assert_eq!(fixed(json!({"spec": {}}), &found), 1);
    assert_eq!(fixed(json!({"spec": {"clusterIP": "None"}}), &found), 0);
    assert_eq!(fixed(json!({"spec": {"type": "ExternalName"}}), &found), 0);
    let address = live(json!({"spec": {"clusterIP": "10.0.0.1"}}), &[]);
    assert_eq!(fixed(json!({"spec": {}}), &address), 0);
}

#[test]
fn what_others_own_as_well_is_still_there() {
    let (both, one) = (
        json!({"f:data": {"f:a": {}, "f:b": {}}}),
        json!({"f:data": {"f:a": {}}}),
    );
    let data = json!({"data": {"a": "1", "b": "2"}});
    let before = live(
        data.clone(),
        &[(OURS, both.clone()), ("kops", both.clone())],
    );
    let after = live(data, &[(OURS, one), ("kops", both)]);
    let found = find_co_owned_fields(&key("", "ConfigMap"), &before, &after, OURS);
    let found: Vec<_> = found
        .iter()
        .map(|one| (one.path.to_string(), one.owners.join(",")))
        .collect();
    assert_eq!(found, [("data.b".to_owned(), "kops".to_owned())]);
    assert_eq!(
        find_co_owned_fields(&key("", "ConfigMap"), &after, &after, OURS),
        []
    );
}
