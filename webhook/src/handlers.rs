//! From bytes to a response, whatever the bytes are.

use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use common::admission::answer::{self, Task};
use common::admission::review::{Request, Response};
use common::admission::verdict::Verdict;
use common::admission::{Facts, validate};
use serde_json::json;
use tracing::{Instrument as _, error, info, warn};

use crate::body;
use crate::connections::Place;
use crate::refusal::Refusal;
use crate::state::State;
use crate::telemetry::{Path, Review, Rule, span};

/// Who sends, where the connection does not say.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// When a client of the API server is told to try again.
const RETRY_SECONDS: u32 = 1;
/// Larger reviews are judged on another thread, because they would delay all others on the worker.
const LARGE: usize = 256 << 10;

/// The path of a task.
fn path(task: Task) -> &'static str {
    match task {
        Task::Mutate => "/mutate",
        Task::Validate => "/validate",
        Task::Clusters { .. } => "/clusters",
    }
}

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
    let facts = match task {
        Task::Clusters { .. } => facts,
        _ => match state.live.complete(facts, &body.bytes).await {
            Ok(facts) => facts,
            Err(refusal) => return deny(&state, refusal, &body.bytes),
        },
    };
    let parent = request.headers().get("traceparent");
    let span = span(parent.and_then(|parent| parent.to_str().ok()));
    let begun = Instant::now();
    let answered = if let Task::Clusters { .. } = task {
        ask(&state, &facts, &body.bytes).instrument(span).await
    } else if body.bytes.len() > LARGE {
        // It takes some times its size while it is judged. The semaphore is never closed.
        let _large = state.large.acquire().await;
        let (shared, bytes) = (Arc::clone(&state), body.bytes.clone());
        actix_web::web::block(move || span.in_scope(|| answer(task, &shared, &facts, &bytes)))
            .await
            .unwrap_or_else(|_| Answer::failed(""))
    } else {
        span.in_scope(|| answer(task, &state, &facts, &body.bytes))
    };
    state
        .metrics
        .seconds
        .get_or_create(&Path { path: path(task) })
        .observe(begun.elapsed().as_secs_f64());
    state
        .answer(answered.status)
        .content_type("application/json")
        .body(answered.body)
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

/// Status and body of the HTTP response.
struct Answer {
    status: StatusCode,
    body: Vec<u8>,
}

impl Answer {
    fn of(status: StatusCode, response: &Response) -> Self {
        match serde_json::to_vec(response) {
            Ok(body) => Self { status, body },
            Err(_) => Self {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                body: Vec::new(),
            },
        }
    }

    /// Something is wrong in here: denied, whatever the failurePolicy.
    fn failed(uid: &str) -> Self {
        let message = "the webhook failed; its log says why";
        let response = Response::failed(uid, 500, "InternalError", message);
        // Without the uid it is no answer to the API server, and the failurePolicy decides.
        let status = match uid {
            "" => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::OK,
        };
        Self::of(status, &response)
    }
}

/// Asks the API server what the requester may do, where the verdict depends on it, and judges.
async fn ask(state: &State, facts: &Facts, body: &Bytes) -> Answer {
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
                return Answer::failed(&request.uid);
            }
        }
    }
    answer(Task::Clusters { is_entitled }, state, facts, body)
}

/// Reads, judges and writes. A panic is an internal error of the answer; the server keeps running.
fn answer(task: Task, state: &State, facts: &Facts, body: &Bytes) -> Answer {
    let request = match Request::from_slice(body) {
        Ok(request) => request,
        Err(error) => {
            state.metrics.refused("unreadable");
            return match Response::unreadable(&error) {
                Some(response) => Answer::of(StatusCode::OK, &response),
                None => Answer {
                    status: StatusCode::BAD_REQUEST,
                    body: json!({ "error": error.to_string() })
                        .to_string()
                        .into_bytes(),
                },
            };
        }
    };
    settle(task, state, &request, || {
        answer::answer(task, &request, facts)
    })
}

/// Writes what was judged. Neither a panic nor anything else that goes wrong lets the request through.
fn settle(
    task: Task,
    state: &State,
    request: &Request<'_>,
    judge: impl FnOnce() -> Result<(Response, Verdict), serde_json::Error>,
) -> Answer {
    match catch_unwind(AssertUnwindSafe(judge)) {
        Ok(Ok((response, verdict))) => {
            record(task, state, request, &response, &verdict);
            Answer::of(StatusCode::OK, &response)
        }
        Ok(Err(error)) => {
            error!(uid = %request.uid, %error, "the patch cannot be written");
            Answer::failed(&request.uid)
        }
        Err(_) => {
            state.metrics.refused("panic");
            error!(uid = %request.uid, kind = request.kind.kind, "a review panicked");
            Answer::failed(&request.uid)
        }
    }
}

/// Counts and logs: names and rules, never values.
fn record(
    task: Task,
    state: &State,
    request: &Request<'_>,
    response: &Response,
    verdict: &Verdict,
) {
    let labels = Review {
        path: path(task),
        operation: request.operation.name(),
        allowed: if response.is_allowed() {
            "true"
        } else {
            "false"
        },
    };
    state.metrics.reviews.get_or_create(&labels).inc();
    for problem in &verdict.problems {
        let label = Rule { rule: problem.rule };
        state.metrics.denials.get_or_create(&label).inc();
    }
    for problem in &verdict.lifted {
        let label = Rule { rule: problem.rule };
        state.metrics.lifted.get_or_create(&label).inc();
    }
    if response.is_allowed() && verdict.lifted.is_empty() {
        return;
    }
    let rules = |problems: &[common::admission::verdict::Problem]| {
        let mut rules: Vec<&str> = problems.iter().map(|problem| problem.rule).collect();
        rules.dedup();
        rules.join(",")
    };
    info!(
        uid = %request.uid,
        operation = request.operation.name(),
        kind = request.kind.kind,
        namespace = request.namespace,
        name = request.name,
        user = request.user_info.username,
        allowed = response.is_allowed(),
        rules = rules(&verdict.problems),
        break_glass = rules(&verdict.lifted),
        "judged"
    );
}

#[cfg(test)]
mod tests;
