//! The state that all workers share.

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

/// The bytes for all bodies: an eighth of the memory that deploy/base allows. Parsing them takes ten times as much.
const BODIES: usize = 32 << 20;
/// The most large reviews, and reviews of core sets, that are validated at the same time. Each takes several times its size.
const LARGE_AT_ONCE: usize = 2;
/// The most reviews for which the API server is asked at the same time, so that senders of reviews cannot keep it busy.
const ASKED_AT_ONCE: usize = 4;

/// The state that all workers share.
#[derive(Debug)]
pub struct State {
    facts: watch::Receiver<Option<Arc<Facts>>>,
    /// The age of the facts.
    pub freshness: Arc<Freshness>,
    /// The served certificate.
    pub certificate: Arc<Served>,
    /// Asks what requesters may do.
    pub access: Access,
    /// Looks up what the watches have not brought yet.
    pub live: Live,
    /// The metrics.
    pub metrics: Metrics,
    /// Set by SIGTERM: the process is not ready, and closes each connection after its response.
    pub draining: AtomicBool,
    /// The turns of reviews that are validated on a thread of their own.
    pub work: Arc<Turns>,
    /// The turns of reviews for which the API server is asked.
    pub asks: Arc<Turns>,
    /// The memory for the bodies of reviews.
    pub bodies: Arc<Budget>,
}

impl State {
    /// Creates the state. No review has been validated yet.
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

    /// Returns a builder for a response. While draining, the response closes the connection.
    pub fn answer(&self, status: StatusCode) -> HttpResponseBuilder {
        let mut builder = HttpResponse::build(status);
        if self.draining.load(Ordering::Relaxed) {
            builder.force_close();
        }
        builder
    }

    /// Returns the response to a request without a verdict.
    pub fn refuse(&self, refusal: Refusal) -> HttpResponse {
        self.metrics.refused(refusal.reason());
        let mut answer = self.answer(refusal.status());
        // The rest of the body is not read.
        if refusal != Refusal::Busy {
            answer.force_close();
        }
        if refusal.is_short() {
            answer.insert_header((header::RETRY_AFTER, "1"));
        }
        answer.json(refusal.body())
    }

    /// Returns the facts, if verdicts can rely on them.
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
