//! Validates requests for namespaces (semantics 6.2, 14.2).

use super::{Operation, Request, Verdict, read, rules};
use crate::Facts;
use crate::verdict::Problem;

/// Returns whether a request is for a namespace. Its subresources `status` and `finalize` change metadata as well.
pub(super) fn is_written(request: &Request<'_>) -> bool {
    let sub = request.sub_resource.as_deref().unwrap_or_default();
    let is_namespace = request.kind.group.is_empty() && request.kind.kind == "Namespace";
    is_namespace && matches!(sub, "" | "status" | "finalize")
}

/// Validates a request that may make a namespace stand for a cluster (semantics 6.2). `is_entitled`: whether the requester has the right,
/// which only the API server knows.
pub(crate) fn enrolment(request: &Request<'_>, is_entitled: bool) -> Verdict {
    let mut verdict = Verdict::default();
    match enrolling(request) {
        Ok(None) => {}
        Ok(Some((label, namespace))) => {
            verdict.problem(rules::cluster::reserved(label, &namespace));
            verdict.problem((!is_entitled).then(|| rules::cluster::unentitled(label)));
        }
        Err(problem) => verdict.problems.push(problem),
    }
    verdict.lift(&request.requester());
    verdict
}

/// Returns the label by which a request enrols a namespace, and the name of the namespace.
fn enrolling(request: &Request<'_>) -> Result<Option<(&'static str, String)>, Problem> {
    let old = match request.operation {
        Operation::Create => None,
        Operation::Update => Some(read::marks(request, request.old_object)?),
        Operation::Delete | Operation::Connect => return Ok(None),
    };
    let new = read::marks(request, request.object)?;
    let label = rules::cluster::enrolling(&new, old.as_ref());
    Ok(label.map(|label| (label, new.name().to_owned())))
}

/// Validates a request for a namespace: its deletion, and changes of our marks on it (semantics 14.2).
pub(super) fn judge(request: &Request<'_>, facts: &Facts) -> Verdict {
    let requester = request.requester();
    let mut verdict = Verdict::default();
    match request.operation {
        Operation::Delete => match read::marks(request, request.old_object) {
            Ok(old) => verdict.problem(rules::namespace::deletion(&old, facts)),
            Err(problem) => verdict.problems.push(problem),
        },
        Operation::Create | Operation::Update => {
            let new = read::marks(request, request.object);
            let old = (request.operation == Operation::Update)
                .then(|| read::marks(request, request.old_object))
                .transpose();
            match (new, old) {
                (Ok(new), Ok(old)) => {
                    let (old, who) = (old.as_ref(), &requester);
                    verdict.problem(rules::namespace::deleting_mark(&new, old, who, facts));
                    let label =
                        old.and_then(|old| rules::namespace::guarded_label(&new, old, who, facts));
                    verdict.problem(label);
                }
                (Err(problem), _) | (_, Err(problem)) => verdict.problems.push(problem),
            }
        }
        Operation::Connect => {}
    }
    verdict.lift(&requester);
    verdict
}
