//! What all workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, HttpResponseBuilder};
use certs::served::Served;
use common::admission::Facts;
use tokio::sync::{Semaphore, watch};

use crate::access::Access;
use crate::budget::Budget;
use crate::freshness::Freshness;
use crate::live::Live;
use crate::refusal::Refusal;
use crate::telemetry::Metrics;

/// The bytes of all bodies: an eighth of the memory that deploy/base allows. What is read from them takes ten times as much.
const BODIES: usize = 32 << 20;
/// Large reviews that are judged at one time.
const LARGE_AT_ONCE: usize = 2;

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
    /// For reviews that are being judged.
    pub permits: Semaphore,
    /// For those of them that are large.
    pub large: Arc<Semaphore>,
    /// For those of what core sets follow from: one at a time.
    pub core_sets: Arc<Semaphore>,
    /// For the bodies of reviews.
    pub bodies: Arc<Budget>,
}

impl State {
    /// Judges at most `max_concurrent` reviews at one time.
    pub fn new(
        facts: watch::Receiver<Option<Arc<Facts>>>,
        freshness: Arc<Freshness>,
        certificate: Arc<Served>,
        access: Access,
        live: Live,
        max_concurrent: u16,
    ) -> Self {
        Self {
            facts,
            freshness,
            certificate,
            access,
            live,
            metrics: Metrics::new(),
            draining: AtomicBool::new(false),
            permits: Semaphore::new(usize::from(max_concurrent)),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
            core_sets: Arc::new(Semaphore::new(1)),
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
