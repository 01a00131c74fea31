//! Answers reviews: what each path of the webhook does, without a server.

use super::review::{Response, ReviewError, ReviewRequest};
use super::verdict::Verdict;
use super::{AdmissionFacts, core_set, mutate, validate};

/// What a path of the webhook does with a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewTask {
    /// Fills in defaults.
    Mutate,
    /// Validates the object.
    Validate,
    /// Checks whether the requester may make a namespace stand for a cluster (semantics 6.2).
    Clusters {
        /// Whether the requester may enrol namespaces. Only the API server knows.
        is_entitled: bool,
    },
    /// Validates the ConfigMaps that core sets are computed from (semantics 14.4).
    CoreSets,
}

/// Returns the response to a request, and the verdict in it.
///
/// # Errors
/// The patch cannot be written as JSON.
pub fn answer(
    task: ReviewTask,
    request: &ReviewRequest<'_>,
    facts: &AdmissionFacts,
) -> Result<(Response, Verdict), serde_json::Error> {
    let verdict = match task {
        ReviewTask::Mutate => {
            let defaults = mutate::mutate(request, facts);
            let response = Response::patched(&request.uid, &defaults.patch)?;
            let verdict = Verdict {
                unseen: defaults.unseen,
                ..Verdict::default()
            };
            return Ok((response, verdict));
        }
        ReviewTask::Validate => {
            let mut verdict = validate::validate(request, facts);
            if let Some(name) = &verdict.orphaning {
                let fix = format!("to delete both: kubectl addons uninstall {name}");
                verdict.warnings.push(fix);
            }
            verdict
        }
        ReviewTask::CoreSets => core_set::validate_config_map(request, facts),
        ReviewTask::Clusters { is_entitled } => validate::validate_enrolment(request, is_entitled),
    };
    Ok((Response::from_verdict(request, &verdict), verdict))
}

impl Response {
    /// Returns the denial of a review that cannot be read, or `None` if it has no uid, because the API server accepts no answer without
    /// one.
    #[must_use]
    pub fn unreadable(error: &ReviewError) -> Option<Self> {
        match error {
            ReviewError::NoReview { .. } => None,
            ReviewError::Unreadable { uid, .. } => {
                Some(Self::failed(uid, 400, "BadRequest", &error.to_string()))
            }
        }
    }
}
