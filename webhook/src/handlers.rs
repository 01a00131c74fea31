//! From bytes to a response, whatever the bytes are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix_web::http::{StatusCode, header};
use actix_web::web::{Bytes, Data, Payload};
use actix_web::{HttpResponse, HttpResponseBuilder};
use certs::reload::Reloader;
use common::admission::review::{Request, Response, ReviewError};
use common::admission::verdict::Verdict;
use common::admission::{Facts, mutate, validate};
use serde_json::json;
use tokio::sync::{Semaphore, watch};
use tracing::{error, info, warn};

use crate::access::Access;
use crate::telemetry::{Metrics, Path, Refused, Review, Rule};

/// Two objects of 3 MiB, the limit of the API server, and the rest of the review.
const MAX_BODY: usize = 7 << 20;
/// actix has no timer for bodies: a client that stops in the middle would keep its place for ever.
const BODY_TIMEOUT: Duration = Duration::from_secs(2);
/// Larger reviews are judged on another thread, because they would delay all others on the worker.
const LARGE: usize = 256 << 10;

/// The state that all workers share.
#[derive(Debug)]
pub struct State {
    /// The last facts; none before the watches have listed once.
    pub facts: watch::Receiver<Option<Arc<Facts>>>,
    /// The served certificate.
    pub certificate: Arc<Reloader>,
    /// What requesters may do.
    pub access: Access,
    /// Metrics.
    pub metrics: Metrics,
    /// Set by SIGTERM: not ready, and connections are closed after their response.
    pub draining: AtomicBool,
    permits: Semaphore,
}

/// What a path does with a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Fill in defaults.
    Mutate,
    /// Judge.
    Validate,
    /// Judge who makes a namespace stand for this cluster: only users who may create installations in the system namespace.
    Clusters {
        /// Whether the requester may; only [`ask`] knows.
        is_entitled: bool,
    },
}

impl Task {
    fn path(self) -> &'static str {
        match self {
            Self::Mutate => "/mutate",
            Self::Validate => "/validate",
            Self::Clusters { .. } => "/clusters",
        }
    }
}

impl State {
    /// Serves at most `max_concurrent` reviews at one time.
    pub fn new(
        facts: watch::Receiver<Option<Arc<Facts>>>,
        certificate: Arc<Reloader>,
        access: Access,
        max_concurrent: u16,
    ) -> Self {
        Self {
            facts,
            certificate,
            access,
            metrics: Metrics::new(),
            draining: AtomicBool::new(false),
            permits: Semaphore::new(usize::from(max_concurrent)),
        }
    }

    /// A response in progress: while draining it closes the connection.
    fn answer(&self, status: StatusCode) -> HttpResponseBuilder {
        let mut builder = HttpResponse::build(status);
        if self.draining.load(Ordering::Relaxed) {
            builder.force_close();
        }
        builder
    }

    /// Without a verdict the API server tries again for 429 and 503 with Retry-After, otherwise its failurePolicy decides.
    fn refuse(&self, status: StatusCode, reason: &'static str, message: &str) -> HttpResponse {
        self.metrics
            .refused
            .get_or_create(&Refused { reason })
            .inc();
        let mut answer = self.answer(status);
        if matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) {
            answer.insert_header((header::RETRY_AFTER, "1"));
        } else {
            // The rest of the body is not read.
            answer.force_close();
        }
        answer.json(json!({ "error": message }))
    }
}

/// `POST /mutate`
pub async fn mutating(state: Data<State>, body: Payload) -> HttpResponse {
    review(Task::Mutate, state.into_inner(), body).await
}

/// `POST /validate`
pub async fn validating(state: Data<State>, body: Payload) -> HttpResponse {
    review(Task::Validate, state.into_inner(), body).await
}

/// `POST /clusters`
pub async fn clusters(state: Data<State>, body: Payload) -> HttpResponse {
    let task = Task::Clusters { is_entitled: false };
    review(task, state.into_inner(), body).await
}

async fn review(task: Task, state: Arc<State>, body: Payload) -> HttpResponse {
    let Ok(_permit) = state.permits.try_acquire() else {
        return state.refuse(
            StatusCode::TOO_MANY_REQUESTS,
            "busy",
            "too many reviews at once",
        );
    };
    let facts = state.facts.borrow().clone();
    let Some(facts) = facts else {
        let message = "catalogues and installations are not known yet";
        return state.refuse(StatusCode::SERVICE_UNAVAILABLE, "not-synced", message);
    };
    let read = tokio::time::timeout(BODY_TIMEOUT, body.to_bytes_limited(MAX_BODY)).await;
    let body = match read {
        Ok(Ok(Ok(body))) => body,
        Ok(Ok(Err(_))) => {
            return state.refuse(StatusCode::BAD_REQUEST, "unreadable", "the body is cut off");
        }
        Ok(Err(_)) => {
            let message = "a review has at most 7 MiB";
            return state.refuse(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message);
        }
        Err(_) => {
            let message = "the body did not come within 2 s";
            return state.refuse(StatusCode::REQUEST_TIMEOUT, "too-slow", message);
        }
    };
    let begun = Instant::now();
    let answered = if let Task::Clusters { .. } = task {
        ask(&state, &facts, &body).await
    } else if body.len() > LARGE {
        let shared = Arc::clone(&state);
        actix_web::web::block(move || answer(task, &shared, &facts, &body))
            .await
            .unwrap_or_else(|_| Answer::failed(""))
    } else {
        answer(task, &state, &facts, &body)
    };
    state
        .metrics
        .seconds
        .get_or_create(&Path { path: task.path() })
        .observe(begun.elapsed().as_secs_f64());
    state
        .answer(answered.status)
        .content_type("application/json")
        .body(answered.body)
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

    /// An internal error: not 2xx, so that failurePolicy decides, with a denial as its text.
    fn failed(uid: &str) -> Self {
        let message = "the webhook failed; its log says why";
        let response = Response::failed(uid, 500, "InternalError", message);
        Self::of(StatusCode::INTERNAL_SERVER_ERROR, &response)
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
            let reason = "unreadable";
            state
                .metrics
                .refused
                .get_or_create(&Refused { reason })
                .inc();
            return match &error {
                ReviewError::Unreadable { uid, .. } => {
                    let response = Response::failed(uid, 400, "BadRequest", &error.to_string());
                    Answer::of(StatusCode::OK, &response)
                }
                ReviewError::NoReview { .. } => Answer {
                    status: StatusCode::BAD_REQUEST,
                    body: json!({ "error": error.to_string() })
                        .to_string()
                        .into_bytes(),
                },
            };
        }
    };
    let judged = catch_unwind(AssertUnwindSafe(|| judge(task, &request, facts)));
    match judged {
        Ok(Ok((response, verdict))) => {
            record(task, state, &request, &response, &verdict);
            Answer::of(StatusCode::OK, &response)
        }
        Ok(Err(error)) => {
            error!(uid = %request.uid, %error, "the patch cannot be written");
            Answer::failed(&request.uid)
        }
        Err(_) => {
            let reason = "panic";
            state
                .metrics
                .refused
                .get_or_create(&Refused { reason })
                .inc();
            error!(uid = %request.uid, kind = request.kind.kind, "a review panicked");
            Answer::failed(&request.uid)
        }
    }
}

fn judge(
    task: Task,
    request: &Request<'_>,
    facts: &Facts,
) -> Result<(Response, Verdict), serde_json::Error> {
    match task {
        Task::Mutate => {
            let patch = mutate::mutate(request, facts);
            Response::patched(&request.uid, &patch).map(|response| (response, Verdict::default()))
        }
        Task::Validate => {
            let mut verdict = validate::validate(request, facts);
            if let Some(name) = &verdict.orphaning {
                let fix = format!("to delete both: kubectl addons uninstall {name}");
                verdict.warnings.push(fix);
            }
            Ok((Response::judged(request, &verdict), verdict))
        }
        Task::Clusters { is_entitled } => {
            let verdict = if is_entitled {
                Verdict::default()
            } else {
                validate::unentitled(request, facts)
            };
            Ok((Response::judged(request, &verdict), verdict))
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
        path: task.path(),
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

/// `GET /healthz`: the process lives.
pub async fn healthz() -> &'static str {
    "ok"
}

/// `GET /readyz`: facts are complete, the certificate is valid, and the process is not shutting down.
pub async fn readyz(state: Data<State>) -> HttpResponse {
    let missing = if state.draining.load(Ordering::Relaxed) {
        "draining"
    } else if state.facts.borrow().is_none() {
        "catalogues and installations are not known yet"
    } else if state.certificate.not_after() <= crate::server::now() {
        "the certificate has expired"
    } else {
        return HttpResponse::Ok().body("ok");
    };
    HttpResponse::ServiceUnavailable().body(missing)
}

/// `GET /metrics`
pub async fn metrics(state: Data<State>) -> HttpResponse {
    match state.metrics.text() {
        Ok(text) => HttpResponse::Ok()
            .content_type("application/openmetrics-text; version=1.0.0; charset=utf-8")
            .body(text),
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}
