//! What no request can bring about.

use serde_json::Value;

use super::*;
use crate::server::tests::rig::{Served, get, serve};

#[actix_web::test]
async fn a_panic_is_counted_and_a_denial_with_the_uid() {
    let served = serve(None, 1);
    let review = br#"{"request": {"uid": "the-uid", "operation": "CREATE",
        "kind": {"kind": "x"}, "resource": {"resource": "x"}}}"#;
    let request = Request::from_slice(review).unwrap();
    let Served { state, health, .. } = served;
    let answer = settle(Task::Mutate, &state, &request, || panic!("on purpose"));
    assert_eq!(answer.status, StatusCode::OK);
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    let response = &body["response"];
    assert_eq!(
        (&response["uid"], &response["allowed"]),
        (&json!("the-uid"), &json!(false))
    );
    let metrics = actix_web::web::block(move || get(health, "/metrics"))
        .await
        .unwrap();
    let metrics = metrics.body.as_str().unwrap();
    assert!(
        metrics.contains("refused_total{reason=\"panic\"} 1"),
        "{metrics}"
    );
}
