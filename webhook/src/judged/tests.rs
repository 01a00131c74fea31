//! What no request can bring about.

use serde_json::Value;

use super::*;
#[test]
fn a_panic_is_counted_and_a_denial_with_the_uid() {
    let review = br#"{"request": {"uid": "the-uid", "operation": "CREATE",
        "kind": {"kind": "x"}, "resource": {"resource": "x"}}}"#;
    let request = Request::from_slice(review).unwrap();
    let answer = Judged::settle(Task::Mutate, &request, || panic!("on purpose"));
    assert_eq!(answer.status, StatusCode::OK);
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    let response = &body["response"];
    assert_eq!(
        (&response["uid"], &response["allowed"]),
        (&json!("the-uid"), &json!(false))
    );
    let metrics = Metrics::new();
    answer.record(&metrics);
    let metrics = metrics.text().unwrap();
    assert!(
        metrics.contains("refused_total{reason=\"panic\"} 1"),
        "{metrics}"
    );
}
