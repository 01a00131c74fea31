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

/// Responses of kube-apiserver 1.36.3 to changes of live objects, observed.
#[test]
fn fields_that_never_change() {
    let fixed = "field is immutable";
    let set = "field is immutable when `immutable` is set";
    let claim = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    let pod = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`";
    for (object, reason, field, value, rule, diff) in [
        (
            "Deployment",
            INVALID,
            "spec.selector",
            r#"{"matchLabels":{"app":"e"}}: "#,
            fixed,
            "",
        ),
        (
            "DaemonSet",
            INVALID,
            "spec.selector",
            r#"{"matchLabels":{"app":"t"}}: "#,
            fixed,
            "",
        ),
        (
            "ReplicaSet",
            INVALID,
            "spec.selector",
            r#"{"matchLabels":{"app":"s3"}}: "#,
            fixed,
            "",
        ),
        ("StatefulSet", FORBIDDEN, "spec", "", STATEFUL_SET, ""),
        (
            "Job",
            INVALID,
            "spec.template",
            r#"{"labels":{"app":"s"},"Spec":{"Image":"x:2"}}: "#,
            fixed,
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
            fixed,
            "",
        ),
        (
            "StorageClass",
            INVALID,
            "parameters",
            r#"{"a":"b"}: "#,
            fixed,
            "",
        ),
        (
            "StorageClass",
            INVALID,
            "reclaimPolicy",
            r#""Retain": "#,
            fixed,
            "",
        ),
        (
            "CSIDriver",
            INVALID,
            "spec.attachedRequired",
            "false: ",
            fixed,
            "",
        ),
        (
            "IngressClass",
            INVALID,
            "spec.controller",
            r#""a.b/d": "#,
            fixed,
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
        ("RuntimeClass", INVALID, "handler", r#""b": "#, fixed, ""),
        (
            "EndpointSlice",
            INVALID,
            "addressType",
            r#""IPv6": "#,
            fixed,
            "",
        ),
        (
            "CustomResourceDefinition",
            INVALID,
            "spec.scope",
            r#""Cluster": "#,
            fixed,
            "",
        ),
        ("ConfigMap", FORBIDDEN, "data", "", set, ""),
        ("ConfigMap", FORBIDDEN, "immutable", "", set, ""),
        ("Secret", INVALID, "type", r#""x.y/z": "#, fixed, ""),
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
        // From the validation of 1.36 and, for a StorageClass, of the versions before it.
        (
            "PersistentVolumeClaim",
            FORBIDDEN,
            "spec.resources.requests.storage",
            "",
            "field can not be less than status.capacity",
            "",
        ),
        (
            "StorageClass",
            FORBIDDEN,
            "parameters",
            "",
            "updates to parameters are forbidden.",
            "",
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
