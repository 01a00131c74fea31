//! Turns request bytes into a response, whatever the bytes are.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use addons_admission::AdmissionFacts;
use addons_admission::answer::ReviewTask;
use addons_admission::review::{Response, ReviewRequest};
use common::entrance;
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span, warn};

use crate::body::{self, Body};
use crate::connections::ConnectionPlace;
use crate::refusal::ReviewRefusal;
use crate::review::ValidatedReview;
use crate::state::WebhookState;
use crate::telemetry::span;
use crate::turns::ReviewTurn;

/// The address of a sender that the connection does not name.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// After how many seconds a client of the API server is told to try again.
const RETRY_SECONDS: u32 = 1;
/// Larger reviews are validated on another thread, because they would delay all others on the worker by more than a millisecond.
const LARGE: usize = 64 << 10;
/// The most scalars, lists and maps in the outer [`LEVELS`] of a review. They take more memory than their text does.
const MAX_NODES: usize = 500_000;
/// The levels that are always parsed: the requester, and the metadata of the objects. Values and entries of catalogues are deeper, and
/// bounded by rules.
const LEVELS: usize = 5;
/// How long a review waits for a turn on a thread. Together with the following steps, this is below the 5 s that the API server waits.
const WAIT: Duration = Duration::from_secs(2);
/// How long a review waits for a turn to ask the API server.
const ASK_WAIT: Duration = Duration::from_secs(1);

/// `POST /mutate`
pub async fn mutating(
    state: Data<WebhookState>,
    request: HttpRequest,
    body: Payload,
) -> HttpResponse {
    review(ReviewTask::Mutate, state.into_inner(), request, body).await
}

/// `POST /validate`
pub async fn validating(
    state: Data<WebhookState>,
    request: HttpRequest,
    body: Payload,
) -> HttpResponse {
    review(ReviewTask::Validate, state.into_inner(), request, body).await
}

/// `POST /clusters`
pub async fn clusters(
    state: Data<WebhookState>,
    request: HttpRequest,
    body: Payload,
) -> HttpResponse {
    let task = ReviewTask::Clusters { is_entitled: false };
    review(task, state.into_inner(), request, body).await
}

/// `POST /core-sets`
pub async fn core_sets(
    state: Data<WebhookState>,
    request: HttpRequest,
    body: Payload,
) -> HttpResponse {
    review(ReviewTask::CoreSets, state.into_inner(), request, body).await
}

async fn review(
    task: ReviewTask,
    state: Arc<WebhookState>,
    request: HttpRequest,
    payload: Payload,
) -> HttpResponse {
    let place = request.conn_data::<ConnectionPlace>();
    let _in_use = place.map(ConnectionPlace::mark_in_use);
    let peer = place.map_or(UNKNOWN, ConnectionPlace::peer);
    let body = match body::read(&request, payload, peer, &state.bodies).await {
        Ok(body) => body,
        Err(refusal) => return state.refuse(refusal),
    };
    let facts = match state.facts() {
        Ok(facts) => facts,
        Err(refusal) => return deny(&state, refusal, &body.bytes),
    };
    let parent = request.headers().get("traceparent");
    let span = span(parent.and_then(|parent| parent.to_str().ok()));
    let begun = Instant::now();
    let judging = async {
        let judged = match task {
            ReviewTask::Clusters { .. } => validate_enrolment(&state, &facts, &body).await?,
            _ => validate_with_lookup(task, &state, facts, &body).await?,
        };
        // Recorded only now, because a review that is validated twice is one decision.
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
        .response_builder(judged.status)
        .content_type("application/json")
        .body(judged.body)
}

/// Returns the response if there are no facts to validate by. A refusal that will soon pass is left to the API server, which tries again
/// by itself. Any other is a denial, because only a denial shows its message to the user, who is told to try again.
fn deny(state: &WebhookState, refusal: ReviewRefusal, body: &[u8]) -> HttpResponse {
    // A large body is not parsed without a turn for it.
    let is_read =
        !refusal.is_transient() && refusal != ReviewRefusal::TooLarge && body.len() <= LARGE;
    let request = is_read.then(|| ReviewRequest::from_slice(body).ok());
    let Some(request) = request.flatten() else {
        return state.refuse(refusal);
    };
    state.metrics.count_refusal(refusal.reason());
    let message = refusal.to_string();
    warn!(uid = %request.uid, reason = refusal.reason(), message, "denied without a verdict");
    let response = Response::retry_later(&request.uid, &message, RETRY_SECONDS);
    // Another connection may lead to a replica that can answer.
    state
        .response_builder(StatusCode::OK)
        .force_close()
        .json(response)
}

/// Validates by the facts. If the verdict depends on something that may have been created just now, that is read and the review is
/// validated once more.
async fn validate_with_lookup(
    task: ReviewTask,
    state: &WebhookState,
    facts: Arc<AdmissionFacts>,
    body: &Body,
) -> Result<ValidatedReview, ReviewRefusal> {
    let judged = validate_body(task, state, &facts, body).await?;
    let Some(unseen) = &judged.unseen else {
        return Ok(judged);
    };
    let turn = state.lookup_turns.take(body.peer, ASK_WAIT).await;
    let turn = turn.ok_or(ReviewRefusal::Unseen)?;
    let facts = state.live.complete(&facts, unseen).await?;
    drop(turn);
    validate_body(task, state, &Arc::new(facts), body).await
}

/// Validates a request that may make a namespace stand for a cluster. If the verdict depends on what the requester may do, the API server
/// is asked.
async fn validate_enrolment(
    state: &WebhookState,
    facts: &Arc<AdmissionFacts>,
    body: &Body,
) -> Result<ValidatedReview, ReviewRefusal> {
    let of = |is_entitled| ReviewTask::Clusters { is_entitled };
    let judged = validate_body(of(false), state, facts, body).await?;
    if !judged.is_denied() {
        return Ok(judged);
    }
    let Ok(request) = ReviewRequest::from_slice(&body.bytes) else {
        return Ok(judged);
    };
    let turn = state.lookup_turns.take(body.peer, ASK_WAIT).await;
    let turn = turn.ok_or(ReviewRefusal::Busy)?;
    let asked = state.access.may_enrol(&request.user_info).await;
    drop(turn);
    match asked {
        Ok(false) => Ok(judged),
        Ok(true) => validate_body(of(true), state, facts, body).await,
        Err(error) => {
            warn!(uid = %request.uid, error = format!("{error:#}"), "cannot ask what the requester may do");
            Ok(ValidatedReview::failed(&request.uid))
        }
    }
}

/// Validates on this thread, or on another one if that takes long.
async fn validate_body(
    task: ReviewTask,
    state: &WebhookState,
    facts: &Arc<AdmissionFacts>,
    body: &Body,
) -> Result<ValidatedReview, ReviewRefusal> {
    let takes_long = body.bytes.len() > LARGE || task == ReviewTask::CoreSets;
    if !takes_long && !has_expressions(&body.bytes) {
        return Ok(ValidatedReview::from_body(task, facts, &body.bytes));
    }
    let turn = state.thread_turns.take(body.peer, WAIT).await;
    let turn = turn.ok_or(ReviewRefusal::Busy)?;
    let (facts, span) = (Arc::clone(facts), Span::current());
    let work = move |bytes: &[u8]| {
        if entrance::count_nodes(bytes, LEVELS) > MAX_NODES {
            return Err(ReviewRefusal::TooLarge);
        }
        Ok(span.in_scope(|| ValidatedReview::from_body(task, &facts, bytes)))
    };
    validate_on_thread(turn, body.clone(), work).await
}

/// Whether a review may contain expressions of catalogues, which take up to some milliseconds each to compile.
fn has_expressions(bytes: &[u8]) -> bool {
    let names: [&[u8]; 2] = [b"healthCheckExprs", b"\"expression\""];
    names
        .iter()
        .any(|name| bytes.windows(name.len()).any(|part| part == *name))
}

/// Validates on another thread. It keeps its turn and its share of the memory until it ends, even if the client has disconnected and no
/// one waits for the verdict.
async fn validate_on_thread(
    turn: ReviewTurn,
    body: Body,
    work: impl FnOnce(&[u8]) -> Result<ValidatedReview, ReviewRefusal> + Send + 'static,
) -> Result<ValidatedReview, ReviewRefusal> {
    let (send, judged) = oneshot::channel();
    let work = move || {
        // Moves the whole body: a closure only captures the fields that it names.
        let (_turn, whole) = (turn, body);
        let _ = send.send(work(&whole.bytes));
    };
    let thread = std::thread::Builder::new();
    match thread.spawn(work) {
        Ok(_) => judged
            .await
            .unwrap_or_else(|_| Ok(ValidatedReview::failed(""))),
        Err(_) => Ok(ValidatedReview::failed("")),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::FromRequest as _;
    use actix_web::http::header::ContentType;
    use actix_web::test::TestRequest;
    use futures::FutureExt as _;

    use super::*;
    use crate::budget::BodyBudget;
    use crate::turns::ReviewTurns;

    #[tokio::test]
    async fn who_goes_away_frees_nothing_that_is_still_used() {
        let (turns, bodies) = (ReviewTurns::new(1), Arc::new(BodyBudget::new(1000)));
        let request = TestRequest::post().insert_header(ContentType::json());
        let (request, mut payload) = request.set_payload("{}").to_http_parts();
        let payload = Payload::from_request(&request, &mut payload).await.unwrap();
        let body = body::read(&request, payload, UNKNOWN, &bodies).await;
        let body = body.unwrap();
        let turn = turns.take(UNKNOWN, WAIT).await.unwrap();
        let (go_on, wait) = std::sync::mpsc::channel();
        let work = move |_: &[u8]| {
            let _ = wait.recv();
            Ok(ValidatedReview::failed(""))
        };
        let mut judging = Box::pin(validate_on_thread(turn, body, work));
        assert!(judging.as_mut().now_or_never().is_none());
        drop(judging);
        assert_eq!((turns.free(), bodies.held_bytes()), (0, 2));
        go_on.send(()).unwrap();
        let _turn = turns.take(UNKNOWN, WAIT).await.unwrap();
        assert_eq!(bodies.held_bytes(), 0, "it is kept for ever");
    }
}
