//! Requests for namespaces (semantics 6, 14).

use super::{Operation, Request, Verdict, read, rules};
use crate::admission::Facts;

/// Whether a request writes a namespace: its subresources `status` and `finalize` change metadata as well.
pub(super) fn is_written(request: &Request<'_>) -> bool {
    let sub = request.sub_resource.as_deref().unwrap_or_default();
    let is_namespace = request.kind.group.is_empty() && request.kind.kind == "Namespace";
    is_namespace && matches!(sub, "" | "status" | "finalize")
}

/// Whether a request makes a namespace stand for this cluster (semantics 6). Then [`unentitled`] is the verdict on a requester who may
/// not create installations in the system namespace, which only the API server knows.
#[must_use]
pub fn makes_local(request: &Request<'_>) -> bool {
    let is_change = matches!(request.operation, Operation::Create | Operation::Update);
    if !is_change || !is_written(request) {
        return false;
    }
    let old = read::marks(request, request.old_object).ok();
    // The API server sends no namespace without metadata.
    read::marks(request, request.object)
        .is_ok_and(|new| rules::cluster::becomes_local(&new, old.as_ref()))
}

/// The verdict on a request that [`makes_local`], by a requester without the right.
#[must_use]
pub fn unentitled(request: &Request<'_>, facts: &Facts) -> Verdict {
    let mut verdict = Verdict {
        problems: vec![rules::cluster::unentitled(facts)],
        ..Verdict::default()
    };
    verdict.lift(&request.requester());
    verdict
}

/// The verdict on a request for a namespace: its deletion, and changes of our marks on it (semantics 14).
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
