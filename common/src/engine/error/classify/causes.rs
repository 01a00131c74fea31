//! The causes of a refusal, field by field: `status.details.causes`.

use kube::core::Status;
use kube::core::response::StatusCause;

use super::super::FieldCause;

/// Words of a refusal to change a field that no longer say `immutable`.
const NEVER_CHANGES: &[&str] = &[
    "immutable",
    // RoleBinding, ClusterRoleBinding.
    "cannot change roleRef",
    // PriorityClass.
    "may not be changed in an update",
    // clusterIPs of a Service.
    "may not change once set",
    // StatefulSet.
    "updates to statefulset spec for fields other than",
    // Pod.
    "pod updates may not change fields other than",
    // completions of a Job, beside its completionMode.
    "can only be modified in tandem",
];

/// The fields of an apply that other managers hold.
pub(super) fn conflicts(status: Option<&Status>) -> Vec<FieldCause> {
    let conflicts = causes(status).filter(|cause| cause.reason == "FieldManagerConflict");
    conflicts
        .map(|cause| FieldCause {
            field: cause.field.trim_start_matches('.').to_owned(),
            message: cause.message.clone(),
        })
        .collect()
}

/// The fields that never change, where these are all that the server objects to: with any other problem the object could
/// not be made anew either.
pub(super) fn immutable(status: Option<&Status>) -> Vec<FieldCause> {
    let found: Option<Vec<FieldCause>> = causes(status).map(immutable_field).collect();
    found.unwrap_or_default()
}

fn causes(status: Option<&Status>) -> impl Iterator<Item = &StatusCause> {
    let details = status.and_then(|status| status.details.as_ref());
    details.into_iter().flat_map(|details| &details.causes)
}

fn immutable_field(cause: &StatusCause) -> Option<FieldCause> {
    // Values are repeated before the rule (`Invalid value: {…}: field is immutable`) or, as a diff, below it.
    let rule = match cause.reason.as_str() {
        "FieldValueInvalid" => cause.message.rsplit(": ").next(),
        "FieldValueForbidden" => {
            let rule = cause.message.trim_start_matches("Forbidden: ");
            rule.lines().next()
        }
        _ => None,
    }?;
    let never = NEVER_CHANGES.iter().any(|words| rule.contains(words));
    never.then(|| FieldCause {
        field: cause.field.clone(),
        message: rule.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One cause: reason, field, message.
    type Row<'a> = (&'a str, &'a str, &'a str);

    fn status(rows: &[Row<'_>]) -> Status {
        let causes: Vec<_> = rows
            .iter()
            .map(|(reason, field, message)| {
                json!({"reason": reason, "field": field, "message": message})
            })
            .collect();
        let status = json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": "",
            "details": {"causes": causes}});
        serde_json::from_value(status).unwrap()
    }

    const INVALID: &str = "FieldValueInvalid";
    const FORBIDDEN: &str = "FieldValueForbidden";
    const STATEFUL_SET: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

    /// Answers of kube-apiserver 1.36.3 to changes of live objects, observed.
    #[test]
    fn fields_that_never_change() {
        let immutable = "field is immutable";
        let set = "field is immutable when `immutable` is set";
        let claim = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        let pod = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`";
        for (object, reason, field, value, rule, diff) in [
            (
                "Deployment",
                INVALID,
                "spec.selector",
                r#"{"matchLabels":{"app":"e"}}: "#,
                immutable,
                "",
            ),
            (
                "DaemonSet",
                INVALID,
                "spec.selector",
                r#"{"matchLabels":{"app":"t"}}: "#,
                immutable,
                "",
            ),
            (
                "ReplicaSet",
                INVALID,
                "spec.selector",
                r#"{"matchLabels":{"app":"s3"}}: "#,
                immutable,
                "",
            ),
            ("StatefulSet", FORBIDDEN, "spec", "", STATEFUL_SET, ""),
            (
                "Job",
                INVALID,
                "spec.template",
                r#"{"labels":{"app":"s"},"Spec":{"Image":"x:2"}}: "#,
                immutable,
                "",
            ),
            (
                "Service",
                INVALID,
                "spec.clusterIPs[0]",
                r#"["100.64.7.8"]: "#,
                "may not change once set",
                "",
            ),
            (
                "RoleBinding",
                INVALID,
                "roleRef",
                r#"{"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"b"}: "#,
                "cannot change roleRef",
                "",
            ),
            (
                "StorageClass",
                INVALID,
                "provisioner",
                r#""c.d": "#,
                immutable,
                "",
            ),
            (
                "StorageClass",
                INVALID,
                "parameters",
                r#"{"a":"b"}: "#,
                immutable,
                "",
            ),
            (
                "StorageClass",
                INVALID,
                "reclaimPolicy",
                r#""Retain": "#,
                immutable,
                "",
            ),
            (
                "CSIDriver",
                INVALID,
                "spec.attachedRequired",
                "false: ",
                immutable,
                "",
            ),
            (
                "IngressClass",
                INVALID,
                "spec.controller",
                r#""a.b/d": "#,
                immutable,
                "",
            ),
            (
                "PriorityClass",
                FORBIDDEN,
                "value",
                "",
                "may not be changed in an update.",
                "",
            ),
            (
                "RuntimeClass",
                INVALID,
                "handler",
                r#""b": "#,
                immutable,
                "",
            ),
            (
                "EndpointSlice",
                INVALID,
                "addressType",
                r#""IPv6": "#,
                immutable,
                "",
            ),
            (
                "CustomResourceDefinition",
                INVALID,
                "spec.scope",
                r#""Cluster": "#,
                immutable,
                "",
            ),
            ("ConfigMap", FORBIDDEN, "data", "", set, ""),
            ("ConfigMap", FORBIDDEN, "immutable", "", set, ""),
            ("Secret", INVALID, "type", r#""x.y/z": "#, immutable, ""),
            (
                "PersistentVolumeClaim",
                FORBIDDEN,
                "spec",
                "",
                claim,
                "\n@@ -10,7 +10,7 @@\n- \"StorageClassName\": \"a\",\n",
            ),
            (
                "PersistentVolume",
                FORBIDDEN,
                "spec.persistentvolumesource",
                "",
                "spec.persistentvolumesource is immutable after creation",
                "\n-  \"Path\": \"/a\",\n",
            ),
            (
                "Pod",
                FORBIDDEN,
                "spec",
                "",
                pod,
                "\n-     \"Value\": \"a\",\n",
            ),
            // A rule of a CustomResourceDefinition, in its author's words.
            ("W", INVALID, "spec.a", r#""b": "#, "a is immutable", ""),
        ] {
            let words = if reason == INVALID {
                "Invalid value"
            } else {
                "Forbidden"
            };
            let message = format!("{words}: {value}{rule}{diff}");
            let wanted = FieldCause {
                field: field.to_owned(),
                message: rule.to_owned(),
            };
            let found = immutable(Some(&status(&[(reason, field, &message)])));
            assert_eq!(found, [wanted], "{object} {field}");
        }
    }

    /// Also observed on 1.36.3.
    #[test]
    fn what_is_merely_wrong_is_no_reason_to_recreate() {
        let selector = (
            INVALID,
            "spec.selector",
            "Invalid value: {}: field is immutable",
        );
        let port = (
            INVALID,
            "spec.template.spec.containers[0].ports[0].containerPort",
            "Invalid value: 99999: must be between 1 and 65535, inclusive",
        );
        let labels = (
            INVALID,
            "spec.template.metadata.labels",
            "Invalid value: {\"app\":\"immutable\"}: `selector` does not match template `labels`",
        );
        let node_port = (
            INVALID,
            "spec.ports[0].nodePort",
            "Invalid value: 100: provided port is not in the valid range. The range of valid ports is 30000-32767",
        );
        for rows in [&[][..], &[port], &[labels], &[node_port], &[port, selector]] {
            assert_eq!(immutable(Some(&status(rows))), [], "{rows:?}");
        }
        let job = [
            (
                INVALID,
                "spec.completions",
                "Invalid value: 3: can only be modified in tandem with spec.parallelism",
            ),
            (
                INVALID,
                "spec.completionMode",
                "Invalid value: \"Indexed\": field is immutable",
            ),
        ];
        assert_eq!(immutable(Some(&status(&job))).len(), 2);
        assert_eq!(immutable(None), []);
    }
}
