//! The metrics of a loop, and whether it is ready.

use std::sync::atomic::{AtomicBool, Ordering};

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Buckets in seconds: an installation that is up to date takes milliseconds, a rollout minutes.
const BUCKETS: [f64; 9] = [0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 30.0, 120.0, 300.0];

/// The metrics of one loop.
#[derive(Debug)]
pub struct LoopMetrics {
    registry: Registry,
    /// Reconciled installations, by outcome.
    pub reconciles: Family<OutcomeLabel, Counter>,
    /// The time that each installation took.
    pub seconds: Histogram,
    /// Whether this process leads.
    pub leader: Gauge,
    /// The number of installations that the loop reconciles.
    pub installations: Gauge,
    is_ready: AtomicBool,
}

/// Label of an outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    /// `changed`, `up-to-date`, `failed` or `busy`.
    pub outcome: &'static str,
}

impl Default for LoopMetrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("addons_reconciler");
        let reconciles = Family::<OutcomeLabel, Counter>::default();
        let seconds = Histogram::new(BUCKETS);
        let (leader, installations) = (Gauge::default(), Gauge::default());
        registry.register("reconciles", "Reconciled installations", reconciles.clone());
        registry.register(
            "duration_seconds",
            "Time to reconcile one installation",
            seconds.clone(),
        );
        registry.register("leader", "Whether this process leads", leader.clone());
        registry.register(
            "installations",
            "Installations that it looks after",
            installations.clone(),
        );
        Self {
            registry,
            reconciles,
            seconds,
            leader,
            installations,
            is_ready: AtomicBool::new(false),
        }
    }
}

impl LoopMetrics {
    /// Returns whether the API server answered the last attempt to lead, so that this process can work or take over.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    pub(crate) fn set_ready(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::Relaxed);
    }

    /// Returns the OpenMetrics text.
    ///
    /// # Errors
    /// None are known: the text is written into memory.
    pub fn encode_text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
