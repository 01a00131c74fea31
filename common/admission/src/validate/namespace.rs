//! Validates requests for namespaces (semantics 6.2, 14.2).

use super::{AdmissionOperation, ReviewRequest, Verdict, read, rules};
use crate::AdmissionFacts;
use crate::verdict::AdmissionProblem;

/// Returns whether a request is for a namespace. Its subresources `status` and `finalize` change metadata as well.
pub(super) fn concerns_namespace(request: &ReviewRequest<'_>) -> bool {
    let sub = request.sub_resource.as_deref().unwrap_or_default();
    let is_namespace = request.kind.group.is_empty() && request.kind.kind == "Namespace";
    is_namespace && matches!(sub, "" | "status" | "finalize")
}

/// Validates a request that may make a namespace stand for a cluster (semantics 6.2). `is_entitled`: whether the requester has the right,
/// which only the API server knows.
pub(crate) fn validate_enrolment(request: &ReviewRequest<'_>, is_entitled: bool) -> Verdict {
    let mut verdict = Verdict::default();
    match find_enrolling_label(request) {
        Ok(None) => {}
        Ok(Some((label, namespace))) => {
            verdict.add_problem(rules::cluster::check_reserved(label, &namespace));
            verdict.add_problem((!is_entitled).then(|| rules::cluster::not_entitled(label)));
        }
        Err(problem) => verdict.problems.push(problem),
    }
    verdict.apply_break_glass(&request.requester());
    verdict
}

/// Returns the label by which a request enrols a namespace, and the name of the namespace.
fn find_enrolling_label(
    request: &ReviewRequest<'_>,
) -> Result<Option<(&'static str, String)>, AdmissionProblem> {
    let old = match request.operation {
        AdmissionOperation::Create => None,
        AdmissionOperation::Update => Some(read::read_marks(request, request.old_object)?),
        AdmissionOperation::Delete | AdmissionOperation::Connect => return Ok(None),
    };
    let new = read::read_marks(request, request.object)?;
    let label = rules::cluster::enrolling_label(&new, old.as_ref());
    Ok(label.map(|label| (label, new.name().to_owned())))
}

/// Validates a request for a namespace: its deletion, and changes of our marks on it (semantics 14.2).
pub(super) fn validate_namespace(request: &ReviewRequest<'_>, facts: &AdmissionFacts) -> Verdict {
    let requester = request.requester();
    let mut verdict = Verdict::default();
    match request.operation {
        AdmissionOperation::Delete => match read::read_marks(request, request.old_object) {
            Ok(old) => verdict.add_problem(rules::namespace::deletion(&old, facts)),
            Err(problem) => verdict.problems.push(problem),
        },
        AdmissionOperation::Create | AdmissionOperation::Update => {
            let new = read::read_marks(request, request.object);
            let old = (request.operation == AdmissionOperation::Update)
                .then(|| read::read_marks(request, request.old_object))
                .transpose();
            match (new, old) {
                (Ok(new), Ok(old)) => {
                    let (old, who) = (old.as_ref(), &requester);
                    verdict.add_problem(rules::namespace::deleting_mark(&new, old, who, facts));
                    let label =
                        old.and_then(|old| rules::namespace::guarded_label(&new, old, who, facts));
                    verdict.add_problem(label);
                }
                (Err(problem), _) | (_, Err(problem)) => verdict.problems.push(problem),
            }
        }
        AdmissionOperation::Connect => {}
    }
    verdict.apply_break_glass(&requester);
    verdict
}
