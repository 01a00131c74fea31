//! Reads the causes of a refusal field by field, from `status.details.causes`.

use kube::core::Status;
use kube::core::response::StatusCause;

use common::foreign::ForeignText;

use super::super::FieldCause;

/// Messages for immutable fields, most without the word `immutable`.
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
    // completions of a Job that do not match its completionMode.
    "can only be modified in tandem",
];

/// Returns the fields of an apply that other managers own.
pub(super) fn conflicts(status: Option<&Status>) -> Vec<FieldCause> {
    let conflicts = causes(status).filter(|cause| cause.reason == "FieldManagerConflict");
    conflicts
        .map(|cause| field_cause(cause.field.trim_start_matches('.'), &cause.message))
        .collect()
}

fn field_cause(field: &str, message: &str) -> FieldCause {
    FieldCause {
        field: ForeignText::new(field).into(),
        message: ForeignText::new(message).into(),
    }
}

/// Returns the immutable fields if the server objects to nothing else: with any other problem, the object could not be created again
/// either.
pub(super) fn immutable(status: Option<&Status>) -> Vec<FieldCause> {
    let found: Option<Vec<FieldCause>> = causes(status).map(immutable_field).collect();
    found.unwrap_or_default()
}

/// Returns all fields that the server refuses.
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
    // Values precede the rule (`Invalid value: {…}: field is immutable`) or follow it as a diff.
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
