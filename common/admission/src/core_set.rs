//! Validates the two ConfigMaps that core sets are computed from: unusable content is not stored (semantics 14.4).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::AdmissionFacts;
use super::review::{AdmissionOperation, ReviewRequest};
use super::verdict::{AdmissionProblem, Verdict};
use addons_clusters::core_set::UnknownCoreSet;
use addons_clusters::core_set::document::{
    KEY_ADDONS, KEY_ROLLOUT, KEY_RULES, read_addons, read_rollout, read_rules,
};
use common::api::names::{CORE_ADDON_RULES, CUSTOM_CORE_ADDONS};
use common::entrance::{self, describe_category};

/// The name of the rule, for metrics and logs.
const RULE: &str = "core-set";

/// The part of a ConfigMap that is validated.
#[derive(Deserialize)]
struct CoreConfigMap {
    metadata: ConfigMapMetadata,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct ConfigMapMetadata {
    #[serde(default)]
    name: Option<String>,
}

/// Validates a ConfigMap that is created or changed. All other ConfigMaps are allowed, and so are changes that keep the data.
#[must_use]
pub fn validate_config_map(request: &ReviewRequest<'_>, facts: &AdmissionFacts) -> Verdict {
    let kind = (request.kind.group.as_ref(), request.kind.kind.as_ref());
    let is_written = matches!(
        request.operation,
        AdmissionOperation::Create | AdmissionOperation::Update
    );
    let system = facts.settings.system_namespace.as_str();
    let is_of_system = request.namespace.as_deref() == Some(system);
    if kind != ("", "ConfigMap") || !is_written || !is_of_system || request.is_of_subresource() {
        return Verdict::default();
    }
    let read = |raw: &serde_json::value::RawValue| {
        entrance::read_outline::<CoreConfigMap>(raw.get().as_bytes())
    };
    let mut verdict = Verdict::default();
    let new = match request.object.map(read) {
        Some(Ok(new)) => new,
        Some(Err(error)) => {
            let message = format!("it cannot be read ({})", describe_category(&error));
            verdict.add_problem(Some(AdmissionProblem::invalid(RULE, "", message)));
            return verdict;
        }
        None => return verdict,
    };
    let old = request.old_object.and_then(|old| read(old).ok());
    if old.is_some_and(|old| old.data == new.data) {
        return verdict;
    }
    let name = new.metadata.name.as_deref().or(request.name.as_deref());
    match find_unknown(name.unwrap_or_default(), &new.data.unwrap_or_default()) {
        None => {}
        // A missing key releases nothing, and clients that write key by key pass through this state.
        Some(missing @ UnknownCoreSet::Missing { .. }) => {
            verdict.warnings.push(missing.to_string())
        }
        Some(unknown) => verdict.add_problem(Some(AdmissionProblem::invalid(
            RULE,
            "",
            unknown.to_string(),
        ))),
    }
    verdict
}

/// Returns why core sets would be unknown with this content of the ConfigMap `name`.
fn find_unknown(name: &str, data: &BTreeMap<String, String>) -> Option<UnknownCoreSet> {
    let text = |key: &str| data.get(key).map(String::as_str);
    match name {
        CORE_ADDON_RULES => {
            let rollout = read_rollout(text(KEY_ROLLOUT)).err();
            rollout.or_else(|| read_rules(text(KEY_RULES)).err())
        }
        CUSTOM_CORE_ADDONS => read_addons(text(KEY_ADDONS)).err(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn judged(operation: &str, namespace: &str, name: &str, data: &Value, old: &Value) -> Verdict {
        let object = |data: &Value| json!({"metadata": {"name": name}, "data": data});
        let review = json!({"request": {
            "uid": "1", "operation": operation, "namespace": namespace,
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "object": object(data), "oldObject": object(old),
        }})
        .to_string();
        let request = ReviewRequest::from_slice(review.as_bytes()).unwrap();
        validate_config_map(&request, &AdmissionFacts::default())
    }

    #[test]
    fn only_what_core_sets_follow_from_is_judged() {
        let wrong = json!({"rules.yaml": "- a", "addons.yaml": "- a"});
        let none = json!({});
        for (operation, namespace, name, old, denied) in [
            ("CREATE", "kubectl-addons", "core-addon-rules", &none, true),
            ("UPDATE", "kubectl-addons", "core-addon-rules", &none, true),
            (
                "UPDATE",
                "kubectl-addons",
                "core-addon-rules",
                &wrong,
                false,
            ),
            (
                "CREATE",
                "kubectl-addons",
                "custom-core-addons",
                &none,
                true,
            ),
            (
                "DELETE",
                "kubectl-addons",
                "custom-core-addons",
                &none,
                false,
            ),
            (
                "CREATE",
                "kubectl-addons",
                "core-addon-rollout",
                &none,
                false,
            ),
            ("CREATE", "default", "core-addon-rules", &none, false),
        ] {
            let verdict = judged(operation, namespace, name, &wrong, old);
            assert_eq!(
                verdict.denial().is_some(),
                denied,
                "{operation} {namespace}/{name}: {verdict:?}"
            );
        }
    }

    #[test]
    fn a_missing_key_is_a_warning() {
        let verdict = judged(
            "CREATE",
            "kubectl-addons",
            "core-addon-rules",
            &json!({"rules": "[]"}),
            &json!({}),
        );
        assert_eq!(verdict.denial(), None);
        assert!(verdict.warnings[0].contains("data[rules.yaml]: it is missing"));
    }
}
