//! Webhook configurations.

use serde_json::{Value, json};

use super::ReadinessStatus::{Current, InProgress};
use super::{
    ContextNeed, ReadinessContext, ReadyEndpoints, called_namespaces, check, check_in,
    find_context_need, object,
};

fn slice(name: &str, service: &str, endpoints: Value) -> Value {
    json!({
        "metadata": {"namespace": "guard", "name": name, "labels": {"kubernetes.io/service-name": service}},
        "endpoints": endpoints,
    })
}

fn calls(service: &str, bundle: &str) -> Value {
    let service = json!({"namespace": "guard", "name": service});
    json!({"name": format!("{bundle}.example.com"), "clientConfig": {"service": service, "caBundle": bundle}})
}

/// What is validated passes while nobody answers and failures are ignored; what is mutated would be stored as it was not meant.
#[test]
fn a_validating_webhook_whose_failures_are_ignored_is_not_waited_for() {
    let endpoints = ReadyEndpoints::default();
    let ctx = ReadinessContext {
        endpoints: Some(&endpoints),
        ..ReadinessContext::default()
    };
    let ignored = |bundle: &str| {
        let mut webhook = calls("a", bundle);
        webhook["failurePolicy"] = json!("Ignore");
        webhook
    };
    let validating = "admissionregistration.k8s.io/ValidatingWebhookConfiguration";
    let mutating = "admissionregistration.k8s.io/MutatingWebhookConfiguration";
    let bundle = ".example.com has no caBundle yet";
    let endpoint = "guard/Service a has no ready endpoints yet";
    for (kind, webhooks, status, message) in [
        (
            validating,
            json!([ignored("")]),
            Current,
            format!("{bundle}, which is ignored"),
        ),
        (
            validating,
            json!([ignored("x")]),
            Current,
            format!("{endpoint}, which is ignored"),
        ),
        (
            validating,
            json!([ignored(""), calls("a", "x")]),
            InProgress,
            format!("waiting: {endpoint}"),
        ),
        (
            mutating,
            json!([ignored("")]),
            InProgress,
            format!("waiting: {bundle}"),
        ),
    ] {
        check_in(kind, json!({"webhooks": webhooks}), &ctx, status, &message);
    }
}

/// The Service comes with an add-on that needs this one, which would wait for it for ever.
#[test]
fn a_webhook_whose_service_does_not_exist_is_not_waited_for() {
    let mut endpoints = ReadyEndpoints::default();
    endpoints.replace_slices("guard", &[]);
    let known = |endpoints: &ReadyEndpoints, webhooks: Value, status, message: &str| {
        let ctx = ReadinessContext {
            endpoints: Some(endpoints),
            ..ReadinessContext::default()
        };
        for kind in [
            "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
        ] {
            let kind = format!("admissionregistration.k8s.io/{kind}");
            check_in(&kind, json!({"webhooks": webhooks}), &ctx, status, message);
        }
    };
    let dead = "waiting: guard/Service a has no ready endpoints yet";
    // It is not known which Services there are.
    known(&endpoints, json!([calls("a", "x")]), InProgress, dead);
    endpoints.replace_services("guard", ["a".to_owned()].into());
    known(&endpoints, json!([calls("a", "x")]), InProgress, dead);
    let absent = "x.example.com calls guard/Service b, which does not exist: what it judges is refused until it does";
    known(&endpoints, json!([calls("b", "x")]), Current, absent);
    known(
        &endpoints,
        json!([calls("b", "x"), calls("a", "x")]),
        InProgress,
        dead,
    );
}

/// A webhook without an endpoint blocks whatever it judges.
#[test]
fn a_webhook_needs_an_endpoint() {
    let ready = json!([{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}]);
    let unready = json!([{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}]);
    let untold = json!([{"addresses": ["10.0.0.1"]}]);
    let no_address = json!([{"addresses": [], "conditions": {"ready": true}}]);
    let mut endpoints = ReadyEndpoints::default();
    endpoints.replace_slices(
        "guard",
        &[
            slice("a-1", "a", unready.clone()),
            slice("a-2", "a", ready.clone()),
            slice("b-1", "b", unready.clone()),
            slice("c-1", "c", untold),
            slice("d-1", "d", no_address),
            slice("e-1", "e", Value::Null),
        ],
    );
    let by_url = json!({"name": "u.example.com", "clientConfig": {"url": "https://example.com"}});
    let dead =
        |service: &str| format!("waiting: guard/Service {service} has no ready endpoints yet");
    for kind in [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ] {
        let kind = format!("admissionregistration.k8s.io/{kind}");
        for (webhooks, status, message) in [
            (json!([]), Current, "ready".to_owned()),
            (Value::Null, Current, "ready".to_owned()),
            (json!([by_url]), Current, "ready".to_owned()),
            (json!([calls("a", "x")]), Current, "ready".to_owned()),
            (json!([calls("c", "x")]), Current, "ready".to_owned()),
            (
                json!([calls("a", "x"), calls("b", "x")]),
                InProgress,
                dead("b"),
            ),
            (json!([calls("d", "x")]), InProgress, dead("d")),
            (json!([calls("e", "x")]), InProgress, dead("e")),
            (json!([calls("f", "x")]), InProgress, dead("f")),
            (
                json!([calls("a", "")]),
                InProgress,
                "waiting: .example.com has no caBundle yet".to_owned(),
            ),
        ] {
            let ctx = ReadinessContext {
                endpoints: Some(&endpoints),
                ..ReadinessContext::default()
            };
            check_in(&kind, json!({"webhooks": webhooks}), &ctx, status, &message);
        }
        // Without the right to read endpoints only the certificate is waited for.
        check(
            &kind,
            json!({"webhooks": [calls("b", "x")]}),
            Current,
            "ready",
        );
    }

    // Slices come, change and go.
    endpoints.update_slice(&slice("b-1", "b", ready.clone()));
    endpoints.update_slice(&slice("a-2", "a", unready));
    endpoints.remove_slice(&slice("c-1", "c", ready));
    let has = ["a", "b", "c"].map(|service| endpoints.has_ready_endpoint("guard", service));
    assert_eq!(has, [false, true, false]);
    endpoints.replace_slices("guard", &[]);
    assert!(!endpoints.has_ready_endpoint("guard", "b"));
}

#[test]
fn only_services_need_their_endpoints() {
    let kind = "admissionregistration.k8s.io/ValidatingWebhookConfiguration";
    let configuration = object(
        kind,
        json!({"webhooks": [calls("a", "x"), calls("b", "x")]}),
    );
    assert_eq!(
        find_context_need(&configuration),
        Some(ContextNeed::Endpoints)
    );
    let namespaces: Vec<_> = called_namespaces(&configuration).into_iter().collect();
    assert_eq!(namespaces, ["guard"]);
    let by_url = json!({"webhooks": [{"clientConfig": {"url": "https://example.com"}}]});
    assert_eq!(find_context_need(&object(kind, by_url)), None);
}
