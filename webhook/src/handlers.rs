//! From bytes to a response, whatever the bytes are.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use actix_web::http::StatusCode;
use actix_web::web::{self, Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use common::admission::answer::Task;
use common::admission::review::{Request, Response};
use common::admission::{Facts, validate};
use tokio::sync::Semaphore;
use tracing::{Instrument as _, Span, warn};

use crate::body::{self, Body};
use crate::connections::Place;
use crate::core_sets;
use crate::judged::Judged;
use crate::refusal::Refusal;
use crate::state::State;
use crate::telemetry::span;

/// Who sends, where the connection does not say.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// When a client of the API server is told to try again.
const RETRY_SECONDS: u32 = 1;
/// Larger reviews are judged on another thread, because they would delay all others on the worker.
const LARGE: usize = 256 << 10;

/// `POST /mutate`
pub async fn mutating(state: Data<State>, request: HttpRequest, body: Payload) -> HttpResponse {
    review(Task::Mutate, state.into_inner(), request, body).await
}

/// `POST /validate`
pub async fn validating(state: Data<State>, request: HttpRequest, body: Payload) -> HttpResponse {
    review(Task::Validate, state.into_inner(), request, body).await
}

/// `POST /clusters`
pub async fn clusters(state: Data<State>, request: HttpRequest, body: Payload) -> HttpResponse {
    let task = Task::Clusters { is_entitled: false };
    review(task, state.into_inner(), request, body).await
}

/// `POST /core-sets`
pub async fn core_sets(state: Data<State>, request: HttpRequest, body: Payload) -> HttpResponse {
    review(Task::CoreSets, state.into_inner(), request, body).await
}

async fn review(
    task: Task,
    state: Arc<State>,
    request: HttpRequest,
    payload: Payload,
) -> HttpResponse {
    let place = request.conn_data::<Place>();
    let _in_use = place.map(Place::in_use);
    let peer = place.map_or(UNKNOWN, Place::peer);
    let body = match body::read(&request, payload, peer, &state.bodies).await {
        Ok(body) => body,
        Err(refusal) => return state.refuse(refusal),
    };
    let facts = match state.facts() {
        Ok(facts) => facts,
        Err(refusal) => return deny(&state, refusal, &body.bytes),
    };
    // Not before the body has come: clients that send none would keep the places of those that do.
    let Ok(_permit) = state.permits.try_acquire() else {
        return state.refuse(Refusal::Busy);
    };
    let parent = request.headers().get("traceparent");
    let span = span(parent.and_then(|parent| parent.to_str().ok()));
    let begun = Instant::now();
    let judging = async {
        let judged = match task {
            Task::Clusters { .. } => ask(&state, &facts, &body.bytes).await,
            Task::CoreSets => core_sets::judge(&state, &facts, &body).await,
            _ => look(task, &state, facts, &body).await?,
        };
        // Not before: a review that is judged twice is one decision.
        judged.record(&state.metrics);
        Ok(judged)
    };
    let judged = match judging.instrument(span).await {
        Ok(judged) => judged,
        Err(refusal) => return deny(&state, refusal, &body.bytes),
    };
    state
        .metrics
        .seconds
        .get_or_create(&task.into())
        .observe(begun.elapsed().as_secs_f64());
    state
        .answer(judged.status)
        .content_type("application/json")
        .body(judged.body)
}

/// The answer where there are no facts to judge by. What passes soon is left to the API server, which tries again by
/// itself. The rest is a denial, for only that brings its message to the user, who is told to try again.
fn deny(state: &State, refusal: Refusal, body: &[u8]) -> HttpResponse {
    match Request::from_slice(body) {
        Ok(request) if !refusal.is_short() => {
            state.metrics.refused(refusal.reason());
            let message = refusal.to_string();
            warn!(uid = %request.uid, reason = refusal.reason(), message, "denied without a verdict");
            let response = Response::later(&request.uid, &message, RETRY_SECONDS);
            // Another connection may lead to a replica that is better off.
            state.answer(StatusCode::OK).force_close().json(response)
        }
        _ => state.refuse(refusal),
    }
}

/// Judges by the facts, and where something is missing in them that may have been created just now, once more with that.
async fn look(
    task: Task,
    state: &State,
    facts: Arc<Facts>,
    body: &Body,
) -> Result<Judged, Refusal> {
    let judged = judge(task, state, &facts, body).await;
    let Some(unseen) = &judged.unseen else {
        return Ok(judged);
    };
    let facts = state.live.complete(&facts, unseen).await?;
    Ok(judge(task, state, &Arc::new(facts), body).await)
}

/// Judges on this thread, or on another one where that takes long.
async fn judge(task: Task, state: &State, facts: &Arc<Facts>, body: &Body) -> Judged {
    if body.bytes.len() <= LARGE {
        return Judged::of(task, facts, &body.bytes);
    }
    let (facts, span) = (Arc::clone(facts), Span::current());
    let work = move |bytes: &[u8]| span.in_scope(|| Judged::of(task, &facts, bytes));
    apart(&state.large, body, work).await
}

/// Judges on another thread. A body takes some times its size meanwhile, also where the client is gone by then and no one waits for
/// the verdict: the thread keeps its turn and the share of the memory.
async fn apart(
    large: &Arc<Semaphore>,
    body: &Body,
    work: impl FnOnce(&[u8]) -> Judged + Send + 'static,
) -> Judged {
    // The semaphore is never closed.
    let turn = Arc::clone(large).acquire_owned().await;
    let body = body.clone();
    let judged = web::block(move || {
        let _turn = turn;
        // All of it: a closure takes only the fields that it names.
        let whole = body;
        work(&whole.bytes)
    });
    judged.await.unwrap_or_else(|_| Judged::failed(""))
}

/// Asks the API server what the requester may do, where the verdict depends on it, and judges.
async fn ask(state: &State, facts: &Facts, body: &[u8]) -> Judged {
    let mut is_entitled = false;
    if let Ok(request) = Request::from_slice(body)
        && validate::enrols(&request)
    {
        match state.access.may_enrol(&request.user_info).await {
            Ok(may) => is_entitled = may,
            Err(error) => {
                warn!(uid = %request.uid, error = format!("{error:#}"), "cannot ask what the requester may do");
                return Judged::failed(&request.uid);
            }
        }
    }
    Judged::of(Task::Clusters { is_entitled }, facts, body)
}

#[cfg(test)]
mod tests {
    use actix_web::FromRequest as _;
    use actix_web::http::header::ContentType;
    use actix_web::test::TestRequest;
    use futures::FutureExt as _;

    use super::*;
    use crate::budget::Budget;

    #[tokio::test]
    async fn who_goes_away_frees_nothing_that_is_still_used() {
        let (large, bodies) = (Arc::new(Semaphore::new(1)), Arc::new(Budget::new(1000)));
        let request = TestRequest::post().insert_header(ContentType::json());
        let (request, mut payload) = request.set_payload("{}").to_http_parts();
        let payload = Payload::from_request(&request, &mut payload).await.unwrap();
        let body = body::read(&request, payload, UNKNOWN, &bodies).await;
        let body = body.unwrap();
        let (go_on, wait) = std::sync::mpsc::channel();
        let work = move |_: &[u8]| {
            let _ = wait.recv();
            Judged::failed("")
        };
        let mut judging = Box::pin(apart(&large, &body, work));
        assert!(judging.as_mut().now_or_never().is_none());
        drop(judging);
        drop(body);
        assert_eq!((large.available_permits(), bodies.held()), (0, 2));
        go_on.send(()).unwrap();
        let _turn = large.acquire().await.unwrap();
        assert_eq!(bodies.held(), 0, "it is kept for ever");
    }
}
