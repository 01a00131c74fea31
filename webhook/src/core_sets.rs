//! What core sets follow from is judged on a thread of its own, with the stack and the time that its conditions may need.

use std::sync::Arc;
use std::time::Duration;

use common::admission::answer::Task;
use common::admission::review::{Request, Response};
use common::admission::verdict::Verdict;
use common::admission::{Facts, core_set};
use common::core_set::expression::STACK;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::Span;

use crate::body::Body;
use crate::judged::Judged;
use crate::state::State;

/// Below the 5 s that the API server waits, so that the user is told why.
const BOUND: Duration = Duration::from_secs(4);

/// Judges one at a time. A thread that takes longer than it may ends by itself, for what a condition costs is bounded; the next one
/// waits for it.
pub async fn judge(state: &State, facts: &Arc<Facts>, body: &Body) -> Judged {
    let judged = timeout(BOUND, on_a_thread(state, facts, body)).await;
    judged.unwrap_or_else(|_| too_slow(&body.bytes))
}

/// The denial of what takes too long.
fn too_slow(body: &[u8]) -> Judged {
    let Ok(request) = Request::from_slice(body) else {
        return Judged::failed("");
    };
    let verdict = Verdict {
        problems: vec![core_set::too_slow(BOUND.as_secs())],
        ..Verdict::default()
    };
    Judged::settle(Task::CoreSets, &request, || {
        Ok((Response::judged(&request, &verdict), verdict))
    })
}

async fn on_a_thread(state: &State, facts: &Arc<Facts>, body: &Body) -> Judged {
    // The semaphore is never closed.
    let turn = Arc::clone(&state.core_sets).acquire_owned().await;
    let (send, judged) = oneshot::channel();
    let (facts, body, span) = (Arc::clone(facts), body.clone(), Span::current());
    let work = move || {
        let _turn = turn;
        // With its share of the memory.
        let whole = body;
        let _ = send.send(span.in_scope(|| Judged::of(Task::CoreSets, &facts, &whole.bytes)));
    };
    let thread = std::thread::Builder::new().stack_size(STACK);
    if thread.spawn(work).is_err() {
        return Judged::failed("");
    }
    judged.await.unwrap_or_else(|_| Judged::failed(""))
}
