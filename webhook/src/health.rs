//! Probes and metrics.

use std::sync::atomic::Ordering;
use std::time::Instant;

use actix_web::HttpResponse;
use actix_web::web::Data;

use crate::freshness::WatchedKind;
use crate::state::WebhookState;

/// `GET /healthz`: the process is alive.
pub async fn healthz() -> &'static str {
    "ok"
}

/// `GET /readyz`: the facts are complete and fresh, the certificate is valid, and the process is not shutting down.
pub async fn readyz(state: Data<WebhookState>) -> HttpResponse {
    let missing = if state.draining.load(Ordering::Relaxed) {
        "draining".to_owned()
    } else if let Err(refusal) = state.facts() {
        refusal.to_string()
    } else {
        match state.certificate.not_after() {
            None => "no certificate is served yet".to_owned(),
            Some(end) if end <= crate::server::now() => "the certificate has expired".to_owned(),
            Some(_) => return HttpResponse::Ok().body("ok"),
        }
    };
    HttpResponse::ServiceUnavailable().body(missing)
}

/// `GET /metrics`
pub async fn metrics(state: Data<WebhookState>) -> HttpResponse {
    for watched in WatchedKind::ALL {
        let silent = state.freshness.silence(watched, Instant::now());
        state.metrics.set_facts_age(watched, silent);
    }
    let held = i64::try_from(state.bodies.held_bytes()).unwrap_or(i64::MAX);
    state.metrics.body_bytes.set(held);
    match state.metrics.encode_text() {
        Ok(text) => HttpResponse::Ok()
            .content_type("application/openmetrics-text; version=1.0.0; charset=utf-8")
            .body(text),
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}
