//! What all workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, HttpResponseBuilder};
use addons_admission::Facts;
use certs::served::Served;
use tokio::sync::watch;

use crate::access::Access;
use crate::budget::Budget;
use crate::freshness::Freshness;
use crate::live::Live;
use crate::refusal::Refusal;
use crate::telemetry::Metrics;
use crate::turns::Turns;

/// The bytes of all bodies: an eighth of the memory that deploy/base allows. What is read from them takes ten times as much.
const BODIES: usize = 32 << 20;
/// Large reviews, and those of core sets, that are judged at one time. Each takes some times its size meanwhile.
const LARGE_AT_ONCE: usize = 2;
/// Reviews for which the API server is asked at one time: who sends them must not keep it busy.
const ASKED_AT_ONCE: usize = 4;

/// The state that all workers share.
#[derive(Debug)]
pub struct State {
    facts: watch::Receiver<Option<Arc<Facts>>>,
    /// How old the facts are.
    pub freshness: Arc<Freshness>,
    /// The served certificate.
    pub certificate: Arc<Served>,
    /// What requesters may do.
    pub access: Access,
    /// What the watches have not brought yet.
    pub live: Live,
    /// Metrics.
    pub metrics: Metrics,
    /// Set by SIGTERM: not ready, and connections are closed after their response.
    pub draining: AtomicBool,
    /// For reviews that are judged on a thread of their own.
    pub work: Arc<Turns>,
    /// For reviews that the API server is asked for.
    pub asks: Arc<Turns>,
    /// For the bodies of reviews.
    pub bodies: Arc<Budget>,
}

impl State {
    /// Nothing is judged yet.
    pub fn new(
        facts: watch::Receiver<Option<Arc<Facts>>>,
        freshness: Arc<Freshness>,
        certificate: Arc<Served>,
        access: Access,
        live: Live,
    ) -> Self {
        Self {
            facts,
            freshness,
            certificate,
            access,
            live,
            metrics: Metrics::new(),
            draining: AtomicBool::new(false),
            work: Turns::new(LARGE_AT_ONCE),
            asks: Turns::new(ASKED_AT_ONCE),
            bodies: Arc::new(Budget::new(BODIES)),
        }
    }

    /// A response in progress: while draining it closes the connection.
    pub fn answer(&self, status: StatusCode) -> HttpResponseBuilder {
        let mut builder = HttpResponse::build(status);
        if self.draining.load(Ordering::Relaxed) {
            builder.force_close();
        }
        builder
    }

    /// The response to a request without a verdict.
    pub fn refuse(&self, refusal: Refusal) -> HttpResponse {
        self.metrics.refused(refusal.reason());
        let mut answer = self.answer(refusal.status());
        // The rest of a body is not read.
        if refusal != Refusal::Busy {
            answer.force_close();
        }
        if refusal.is_short() {
            answer.insert_header((header::RETRY_AFTER, "1"));
        }
        answer.json(refusal.body())
    }

    /// The facts, where verdicts can rely on them.
    ///
    /// # Errors
    /// They are not complete yet, or stale.
    pub fn facts(&self) -> Result<Arc<Facts>, Refusal> {
        let facts = self.facts.borrow().clone().ok_or(Refusal::NotSynced)?;
        match self.freshness.stale(Instant::now()) {
            Some(stale) => Err(Refusal::Stale(stale)),
            None => Ok(facts),
        }
    }
}
