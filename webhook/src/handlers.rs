//! From bytes to a response, whatever the bytes are.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes, Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use common::admission::answer::Task;
use common::admission::review::{Request, Response};
use common::admission::{Facts, validate};
use tracing::{Instrument as _, Span, warn};

use crate::body;
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
            Task::CoreSets => core_sets::judge(&state, &facts, &body.bytes).await,
            _ => look(task, &state, facts, &body.bytes).await?,
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
    body: &Bytes,
) -> Result<Judged, Refusal> {
    let judged = judge(task, state, &facts, body).await;
    let Some(unseen) = &judged.unseen else {
        return Ok(judged);
    };
    let facts = state.live.complete(&facts, unseen).await?;
    Ok(judge(task, state, &Arc::new(facts), body).await)
}

/// Judges on this thread, or on another one where that takes long.
async fn judge(task: Task, state: &State, facts: &Arc<Facts>, body: &Bytes) -> Judged {
    if body.len() <= LARGE {
        return Judged::of(task, facts, body);
    }
    // It takes some times its size while it is judged. The semaphore is never closed.
    let _large = state.large.acquire().await;
    let (facts, body, span) = (Arc::clone(facts), body.clone(), Span::current());
    let judged = web::block(move || span.in_scope(|| Judged::of(task, &facts, &body))).await;
    judged.unwrap_or_else(|_| Judged::failed(""))
}

/// Asks the API server what the requester may do, where the verdict depends on it, and judges.
async fn ask(state: &State, facts: &Facts, body: &Bytes) -> Judged {
    // Everyone may do what is not asked about.
    let mut is_entitled = true;
    if let Ok(request) = Request::from_slice(body)
        && validate::makes_local(&request)
    {
        let system = &facts.settings.system_namespace;
        let asked = state
            .access
            .may_create_installations(&request.user_info, system);
        match asked.await {
            Ok(may) => is_entitled = may,
            Err(error) => {
                warn!(uid = %request.uid, error = format!("{error:#}"), "cannot ask what the requester may do");
                return Judged::failed(&request.uid);
            }
        }
    }
    Judged::of(Task::Clusters { is_entitled }, facts, body)
}
