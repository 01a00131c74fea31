//! The state that all workers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpResponse, HttpResponseBuilder};
use addons_admission::AdmissionFacts;
use certs::serving::ServedCertificate;
use tokio::sync::watch;

use crate::access::RequesterAccess;
use crate::budget::BodyBudget;
use crate::freshness::Freshness;
use crate::lookup::LiveLookup;
use crate::refusal::ReviewRefusal;
use crate::telemetry::WebhookMetrics;
use crate::turns::ReviewTurns;

/// The bytes for all bodies: an eighth of the memory that deploy/base allows. Parsing them takes ten times as much.
const BODIES: usize = 32 << 20;
/// The most large reviews, and reviews of core sets, that are validated at the same time. Each takes several times its size.
const LARGE_AT_ONCE: usize = 2;
/// The most reviews for which the API server is asked at the same time, so that senders of reviews cannot keep it busy.
const ASKED_AT_ONCE: usize = 4;

/// The state that all workers share.
#[derive(Debug)]
pub struct WebhookState {
    facts: watch::Receiver<Option<Arc<AdmissionFacts>>>,
    /// The age of the facts.
    pub freshness: Arc<Freshness>,
    /// The served certificate.
    pub certificate: Arc<ServedCertificate>,
    /// Asks what requesters may do.
    pub access: RequesterAccess,
    /// Looks up what the watches have not brought yet.
    pub live: LiveLookup,
    /// The metrics.
    pub metrics: WebhookMetrics,
    /// Set by SIGTERM: the process is not ready, and closes each connection after its response.
    pub draining: AtomicBool,
    /// The turns of reviews that are validated on a thread of their own.
    pub thread_turns: Arc<ReviewTurns>,
    /// The turns of reviews for which the API server is asked.
    pub lookup_turns: Arc<ReviewTurns>,
    /// The memory for the bodies of reviews.
    pub bodies: Arc<BodyBudget>,
}

impl WebhookState {
    /// Creates the state. No review has been validated yet.
    pub fn new(
        facts: watch::Receiver<Option<Arc<AdmissionFacts>>>,
        freshness: Arc<Freshness>,
        certificate: Arc<ServedCertificate>,
        access: RequesterAccess,
        live: LiveLookup,
    ) -> Self {
        Self {
            facts,
            freshness,
            certificate,
            access,
            live,
            metrics: WebhookMetrics::new(),
            draining: AtomicBool::new(false),
            thread_turns: ReviewTurns::new(LARGE_AT_ONCE),
            lookup_turns: ReviewTurns::new(ASKED_AT_ONCE),
            bodies: Arc::new(BodyBudget::new(BODIES)),
        }
    }

    /// Returns a builder for a response. While draining, the response closes the connection.
    pub fn response_builder(&self, status: StatusCode) -> HttpResponseBuilder {
        let mut builder = HttpResponse::build(status);
        if self.draining.load(Ordering::Relaxed) {
            builder.force_close();
        }
        builder
    }

    /// Returns the response to a request without a verdict.
    pub fn refuse(&self, refusal: ReviewRefusal) -> HttpResponse {
        self.metrics.count_refusal(refusal.reason());
        let mut answer = self.response_builder(refusal.status());
        // The rest of the body is not read.
        if refusal != ReviewRefusal::Busy {
            answer.force_close();
        }
        if refusal.is_transient() {
            answer.insert_header((header::RETRY_AFTER, "1"));
        }
        answer.json(refusal.body())
    }

    /// Returns the facts, if verdicts can rely on them.
    ///
    /// # Errors
    /// They are not complete yet, or stale.
    pub fn facts(&self) -> Result<Arc<AdmissionFacts>, ReviewRefusal> {
        let facts = self
            .facts
            .borrow()
            .clone()
            .ok_or(ReviewRefusal::NotSynced)?;
        match self.freshness.find_stale(Instant::now()) {
            Some(stale) => Err(ReviewRefusal::Stale(stale)),
            None => Ok(facts),
        }
    }
}
