//! Refuses objects that could not be read back from a list (semantics 4).

use crate::verdict::AdmissionProblem;
use common::api::installation::AddonInstallation;
use common::entrance::{self, MAX_STORED_DEPTH, UnreadableField};

/// The name of the rule, for metrics and logs.
const RULE: &str = "nesting";

/// Returns the problem of an installation with an unreadable field, or with values that are too large, nest too deep or have a reserved
/// key.
#[must_use]
pub fn check_installation(new: &AddonInstallation) -> Option<AdmissionProblem> {
    if let Some(UnreadableField { field, why }) = &new.spec.unreadable {
        let message = format!("it cannot be read: {why}");
        return Some(AdmissionProblem::invalid("unreadable", *field, message));
    }
    let values = new.spec.values.as_ref()?.to_string();
    if let Err(refused) = entrance::check_values(&values) {
        return Some(AdmissionProblem::invalid(
            "too-large",
            "spec.values",
            refused.to_string(),
        ));
    }
    check_text("spec.values", &values)
}

/// Returns the problem of a field that nests too deep or has a reserved key.
#[must_use]
pub fn check_text(field: &str, text: &str) -> Option<AdmissionProblem> {
    let refused = entrance::check(text.as_bytes(), MAX_STORED_DEPTH).err()?;
    Some(AdmissionProblem::invalid(RULE, field, refused.to_string()))
}
