//! The ConfigMaps of core sets are validated on a thread of their own.

use addons_admission::AdmissionFacts;
use serde_json::{Value, json};

use super::rig::*;

/// A review of new rules.
fn rules(text: &str) -> Vec<u8> {
    let object = json!({"metadata": {"name": "core-addon-rules"}, "data": {"rules.yaml": text}});
    let review = review("ConfigMap", "CREATE", object, json!(null));
    let mut review: Value = serde_json::from_slice(&review).unwrap();
    review["request"]["kind"]["group"] = json!("");
    serde_json::to_vec(&review).unwrap()
}

#[tokio::test]
async fn conditions_have_a_stack_of_their_own() {
    let served = serve(Some(AdmissionFacts::default()));
    let deepest = format!("[{{name: a, when: '{}true', addons: []}}]", "!".repeat(990));
    let wrong = "[{name: a, when: region, addons: []}]";
    let (address, pem) = (served.reviews, served.authority_pem.clone());
    client(move || {
        let mut connection = connect(address, &pem);
        let allowed = post(&mut connection, "/core-sets", &rules(&deepest));
        assert_eq!(allowed.body["response"]["allowed"], true);
        let denied = post(&mut connection, "/core-sets", &rules(wrong));
        let status = &denied.body["response"]["status"];
        assert_eq!(status["code"], 422);
        let message = status["message"].as_str().unwrap();
        assert!(
            message.contains("rule a: when: region is not a fact"),
            "{message}"
        );
    })
    .await;
}
