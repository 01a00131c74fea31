//! Names the changed fields if the server only says that `spec` cannot change (StatefulSet, PersistentVolumeClaim).

use serde_json::Value;

use addons_plan::Step;

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::FieldCause;
use super::super::request::{ApiCall, JSON};

const SPEC: &str = "spec";

/// Returns the causes, with the differing fields in place of `spec`. Returns the server's causes if the fields cannot be determined.
pub(crate) async fn name_fields(
    cluster: &Cluster,
    step: &Step,
    causes: Vec<FieldCause>,
) -> Vec<FieldCause> {
    if causes.iter().all(|cause| cause.field != SPEC) {
        return causes;
    }
    let collection = Collection::from_target(&step.target);
    let call = ApiCall::get(&collection, &step.target.key.name, JSON);
    let Ok(live) = cluster.send::<Value>(call).await else {
        return causes;
    };
    let precise = |cause: FieldCause| {
        let fields = differing_fields(&step.object, &live.object, &cause.message);
        if cause.field != SPEC || fields.is_empty() {
            return vec![cause];
        }
        let causes = fields.into_iter().map(|field| FieldCause {
            field,
            message: cause.message.clone(),
        });
        causes.collect()
    };
    causes.into_iter().flat_map(precise).collect()
}

/// Returns the fields of our `spec` that have another live value, except fields that the rule names in quotes, which may change.
fn differing_fields(ours: &Value, live: &Value, rule: &str) -> Vec<String> {
    let (Some(ours), Some(live)) = (ours.get(SPEC), live.get(SPEC)) else {
        return Vec::new();
    };
    let fields = ours.as_object().into_iter().flatten();
    fields
        .filter(|(name, value)| {
            let is_same = live.get(name).is_some_and(|live| includes(live, value));
            !is_same && !rule.contains(&format!("'{name}'"))
        })
        .map(|(name, _)| format!("{SPEC}.{name}"))
        .collect()
}

/// Returns whether a live value equals the applied one, apart from additions of the server. The recursion is bounded by our object.
fn includes(live: &Value, ours: &Value) -> bool {
    match (live, ours) {
        (Value::Object(live), Value::Object(ours)) => ours
            .iter()
            .all(|(name, ours)| live.get(name).is_some_and(|live| includes(live, ours))),
        (Value::Array(live), Value::Array(ours)) => {
            live.len() == ours.len()
                && live
                    .iter()
                    .zip(ours)
                    .all(|(live, ours)| includes(live, ours))
        }
        (live, ours) => live == ours,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_differ_and_may_not() {
        let rule = "updates to statefulset spec for fields other than 'replicas', 'template' are forbidden";
        let live = json!({"spec": {"replicas": 1, "serviceName": "a", "podManagementPolicy": "OrderedReady",
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"volumeMode": "Filesystem"}}]}});
        let claims = |name: &str| json!([{"metadata": {"name": name}}]);
        for (ours, wanted) in [
            (
                json!({"replicas": 2, "serviceName": "b"}),
                &["spec.serviceName"][..],
            ),
            (
                json!({"serviceName": "a", "volumeClaimTemplates": claims("data")}),
                &[],
            ),
            (
                json!({"serviceName": "a", "volumeClaimTemplates": claims("other")}),
                &["spec.volumeClaimTemplates"],
            ),
            (
                json!({"volumeClaimTemplates": []}),
                &["spec.volumeClaimTemplates"],
            ),
        ] {
            assert_eq!(
                differing_fields(&json!({SPEC: ours}), &live, rule),
                wanted,
                "{ours}"
            );
        }
        assert!(differing_fields(&json!({}), &live, rule).is_empty());
    }
}
