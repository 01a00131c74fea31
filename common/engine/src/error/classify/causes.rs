//! The causes of a refusal, field by field: `status.details.causes`.

use kube::core::Status;
use kube::core::response::StatusCause;

use common::foreign::Foreign;

use super::super::FieldCause;

/// Messages that refuse the change of a field without the word `immutable`.
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
    // The size of a PersistentVolumeClaim.
    "field can not be less than",
    // VolumeAttributesClass; StorageClass before Kubernetes 1.36.
    "updates to parameters are forbidden",
    "updates to provisioner are forbidden",
    "updates to reclaimPolicy are forbidden",
    "updates to driverName are forbidden",
    // completions of a Job, beside its completionMode.
    "can only be modified in tandem",
];

/// The fields of an apply that other managers hold.
pub(super) fn conflicts(status: Option<&Status>) -> Vec<FieldCause> {
    let conflicts = causes(status).filter(|cause| cause.reason == "FieldManagerConflict");
    conflicts
        .map(|cause| field_cause(cause.field.trim_start_matches('.'), &cause.message))
        .collect()
}

fn field_cause(field: &str, message: &str) -> FieldCause {
    FieldCause {
        field: Foreign::new(field).into(),
        message: Foreign::new(message).into(),
    }
}

/// The fields that never change, where these are all that the server objects to: with any other problem the object could
/// not be created again either.
pub(super) fn immutable(status: Option<&Status>) -> Vec<FieldCause> {
    let found: Option<Vec<FieldCause>> = causes(status).map(immutable_field).collect();
    found.unwrap_or_default()
}

/// The fields that the server refuses, whatever the reason.
pub(super) fn invalid(status: Option<&Status>) -> Vec<FieldCause> {
    let found = causes(status).map(|cause| {
        let field = match cause.field.as_str() {
            "<nil>" => "",
            field => field,
        };
        field_cause(field, &cause.message)
    });
    found.collect()
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
    never.then(|| field_cause(&cause.field, rule))
}

#[cfg(test)]
mod tests;
