use serde_json::json;

use addons_engine::identity::KUBE_SYSTEM;

use super::*;

fn system() -> BTreeMap<String, String> {
    let name = "kubernetes.io/metadata.name".to_owned();
    BTreeMap::from([(name, KUBE_SYSTEM.to_owned())])
}

/// A rule for every write of these resources.
fn rule(group: &str, resource: &str) -> Value {
    json!({"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": ["CREATE", "UPDATE"]})
}

/// A configuration whose webhook has these fields beside a Service `shop/guard`.
fn configuration(fields: Value) -> Value {
    let mut webhook = json!({"name": "guard.example.test", "timeoutSeconds": 10, "failurePolicy": "Fail",
        "clientConfig": {"service": {"namespace": "shop", "name": "guard"}}});
    if let (Some(webhook), Value::Object(fields)) = (webhook.as_object_mut(), fields) {
        webhook.extend(fields);
    }
    json!({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "guard"}, "webhooks": [webhook]})
}

/// The problem of a webhook whose backend responds like this.
fn troubles_with(configuration: &Value, backend: Backend) -> Vec<WebhookTrouble> {
    let backends = BTreeMap::from([("shop/guard".to_owned(), backend)]);
    let found = find_webhook_risks(configuration, &system(), &backends, &OwnerIndex::default());
    found.into_iter().map(|risk| risk.trouble).collect()
}

#[test]
fn rules_and_selectors_decide_what_is_covered() {
    use UpgradeWrite::{Leases, Nodes, Pods};
    let elsewhere = json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [KUBE_SYSTEM]}]});
    let labelled = json!({"matchLabels": {"team": "a"}});
    for (fields, expected) in [
        (json!({"rules": [rule("", "pods")]}), vec![Pods]),
        (
            json!({"rules": [rule("*", "*")]}),
            vec![Nodes, Pods, Leases],
        ),
        (
            json!({"rules": [rule("*", "*/*")]}),
            vec![Nodes, Pods, Leases],
        ),
        (
            json!({"rules": [rule("coordination.k8s.io", "leases")]}),
            vec![Leases],
        ),
        (json!({"rules": [rule("", "nodes/status")]}), vec![Nodes]),
        (json!({"rules": [rule("", "pods/eviction")]}), vec![Pods]),
        (json!({"rules": [rule("", "pods/exec")]}), vec![]),
        (json!({"rules": [rule("", "leases")]}), vec![]),
        (json!({"rules": [rule("apps", "*")]}), vec![]),
        (json!({"rules": []}), vec![]),
        (
            json!({"rules": [rule("*", "*")], "failurePolicy": "Ignore"}),
            vec![],
        ),
        // Nodes are in no namespace.
        (
            json!({"rules": [rule("*", "*")], "namespaceSelector": elsewhere}),
            vec![Nodes],
        ),
        (
            json!({"rules": [rule("*", "*")], "namespaceSelector": labelled}),
            vec![Nodes],
        ),
        (
            json!({"rules": [rule("*", "*")], "namespaceSelector": {}}),
            vec![Nodes, Pods, Leases],
        ),
        (
            json!({"rules": [rule("*", "*")], "objectSelector": labelled}),
            vec![],
        ),
    ] {
        let webhook = configuration(fields)["webhooks"][0].clone();
        assert_eq!(blocked_writes(&webhook, &system()), expected, "{webhook}");
    }
    for (field, value, expected) in [
        ("scope", json!("Namespaced"), vec![Pods, Leases]),
        ("scope", json!("Cluster"), vec![Nodes]),
        ("operations", json!(["CONNECT"]), vec![]),
    ] {
        let mut rule = rule("*", "*");
        rule[field] = value;
        let webhook = json!({"rules": [rule]});
        assert_eq!(blocked_writes(&webhook, &system()), expected, "{webhook}");
    }
}

#[test]
fn what_answers_decides_how_bad_it_is() {
    let service = || "shop/guard".to_owned();
    let of_pods = configuration(json!({"rules": [rule("", "pods")]}));
    let none = WebhookTrouble::NoService { service: service() };
    let dead = WebhookTrouble::NoEndpoint { service: service() };
    let alone = WebhookTrouble::OneEndpoint { service: service() };
    for (backend, expected, blocks) in [
        (Backend::Missing, vec![none.clone()], true),
        (Backend::Ready(0), vec![dead], true),
        (Backend::Ready(1), vec![alone.clone()], false),
        (Backend::Ready(2), vec![], false),
        (Backend::Unknown, vec![], false),
    ] {
        let found = troubles_with(&of_pods, backend);
        assert_eq!(found, expected);
        assert_eq!(
            found.iter().any(WebhookTrouble::blocks),
            blocks,
            "{found:?}"
        );
    }
    let slow = configuration(json!({"rules": [rule("", "pods")], "timeoutSeconds": 30}));
    let late = WebhookTrouble::Slow { seconds: 30 };
    let found = troubles_with(&slow, Backend::Ready(2));
    assert_eq!(found.as_slice(), std::slice::from_ref(&late));
    assert_eq!(
        troubles_with(&slow, Backend::Ready(1)),
        [alone, late.clone()]
    );
    assert_eq!(troubles_with(&slow, Backend::Missing), [none]);
    // The webhook is called by its URL, so only its timeout is known.
    let mut by_url = slow;
    by_url["webhooks"][0]["clientConfig"] = json!({"url": "https://guard.example.test"});
    assert_eq!(troubles_with(&by_url, Backend::Missing), [late]);
}

#[test]
fn only_services_that_matter_are_asked_for() {
    let of_pods = configuration(json!({"rules": [rule("", "pods")]}));
    let of_maps = configuration(json!({"rules": [rule("", "configmaps")],
        "clientConfig": {"service": {"namespace": "shop", "name": "maps"}}}));
    let all = [of_pods.clone(), of_maps, of_pods];
    let expected = [("shop".to_owned(), "guard".to_owned())];
    assert_eq!(called_services(&all, &system()), expected);
}
