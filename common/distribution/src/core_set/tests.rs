use serde_json::json;

use super::*;

/// Whatever stays within the bounds of conditions has an answer, or an error: nothing ends the process, or takes long.
#[tokio::test]
async fn the_longest_conditions_fit_stack_and_time() {
    let costly = format!("[{0}].all(a, [{0}].all(b, a == b))", "1,".repeat(220) + "1");
    let conditions = [
        "!".repeat(995) + "true",
        "-".repeat(990) + "1 == 1",
        "true ? ".repeat(120) + "true" + &" : true".repeat(20),
        "1".to_owned() + &"+1".repeat(490) + " == 491",
        "labels".to_owned() + &".a".repeat(490),
        "cni.size() + [".repeat(16),
        costly,
    ];
    for when in conditions {
        let shown: String = when.chars().take(20).collect();
        let rule = json!([{"name": "r", "when": when, "addons": []}]);
        let texts = CoreSetTexts {
            rules: Some(rule.to_string()),
            addons: Some("[]".to_owned()),
            rollout: None,
        };
        let found = evaluate_rules(texts, Profile::sample()).await;
        let is_bounded = !matches!(
            found,
            Err(UnknownCoreSet::NotEvaluated | UnknownCoreSet::TimedOut { .. })
        );
        assert!(is_bounded, "{shown}: {found:?}");
    }
}
