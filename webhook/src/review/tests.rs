//! Cases that no request can cause, and log lines.

use serde_json::Value;

use super::*;

#[test]
fn a_panic_is_counted_and_a_denial_with_the_uid() {
    let review = br#"{"request": {"uid": "the-uid", "operation": "CREATE",
        "kind": {"kind": "x"}, "resource": {"resource": "x"}}}"#;
    let request = ReviewRequest::from_slice(review).unwrap();
    let answer =
        ValidatedReview::from_validation(ReviewTask::Mutate, &request, || panic!("on purpose"));
    assert_eq!(answer.status, StatusCode::OK);
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    let response = &body["response"];
    assert_eq!(
        (&response["uid"], &response["allowed"]),
        (&json!("the-uid"), &json!(false))
    );
    let metrics = WebhookMetrics::new();
    answer.record(&metrics);
    let metrics = metrics.encode_text().unwrap();
    assert!(
        metrics.contains("refused_total{reason=\"panic\"} 1"),
        "{metrics}"
    );
}

#[test]
fn a_rule_is_logged_once() {
    assert_eq!(join_rules(&["size", "form", "size"]), "form,size");
    assert_eq!(join_rules(&[]), "");
}

/// Bodies that nest as deep as possible, on the stack of a worker: no request ends the process. The frames of a test build are larger
/// than those of a release.
#[test]
fn no_body_uses_up_the_stack_of_a_worker() {
    const KEY: &str = "$serde_json::private::RawValue";
    let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    let keyed = (0..10).fold(nested(100), |inner, _| json!({ KEY: inner }).to_string());
    let review = |kind: &str, spec: &str| {
        let object =
            format!(r#"{{"metadata":{{"name":"x","namespace":"kubectl-addons"}},"spec":{spec}}}"#);
        format!(
            r#"{{"request":{{"uid":"u","operation":"UPDATE","name":"x","namespace":"kubectl-addons",
                "kind":{{"group":"kubectl-addons.dev","version":"v1alpha1","kind":"{kind}"}},
                "object":{object},"oldObject":{{"metadata":{{"name":"x"}},"spec":{{"addonRef":{{"name":"web"}},"addons":[]}}}}}}}}"#
        )
    };
    let mut bodies = vec![nested(500_000), "[".repeat(3 << 20), keyed.clone()];
    for values in [nested(90), nested(127), nested(128), nested(300_000), keyed] {
        let record = format!(r#"{{"addonRef":{{"name":"web"}},"values":{values}}}"#);
        bodies.push(review("AddonInstallation", &record));
        let catalogue = format!(
            r#"{{"addons":[{{"name":"a","versions":[{{"version":"1","values":{values},"source":{{"inline":{{"manifest":""}}}}}}]}}]}}"#
        );
        bodies.push(review("AddonCatalogue", &catalogue));
        bodies.push(format!(
            r#"{{"request":{{"uid":"u","userInfo":{values}}}}}"#
        ));
    }
    let work = move || {
        for body in bodies {
            for task in [
                ReviewTask::Mutate,
                ReviewTask::Validate,
                ReviewTask::CoreSets,
                ReviewTask::Clusters { is_entitled: true },
            ] {
                let judged =
                    ValidatedReview::from_body(task, &AdmissionFacts::default(), body.as_bytes());
                assert!(judged.status != StatusCode::INTERNAL_SERVER_ERROR);
            }
        }
    };
    // The stack size of the workers of actix, and of the blocking threads of tokio.
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(work).unwrap().join().unwrap();
}
