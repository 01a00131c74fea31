//! The spans of log lines, and the metrics. Neither contains a value of an object.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use addons_telemetry::metrics::{self, ResourceLabel, WatchFailures};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tracing::{Span, info_span};

use crate::freshness::WatchedKind;

/// Buckets in seconds: most reviews take less than a millisecond.
const BUCKETS: [f64; 14] = [
    0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5,
    2.0,
];

/// Returns the span of a review that belongs to a trace of the API server, so that each log line has the id of the trace. `parent` is the
/// header `traceparent` (W3C Trace Context: version, trace id, parent id, flags).
pub fn span(parent: Option<&str>) -> Span {
    let mut fields = parent.unwrap_or_default().split('-').skip(1);
    let is_hex = |id: &&str| id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut id = |length| fields.next().filter(|id| id.len() == length).filter(is_hex);
    match (id(32), id(16)) {
        (Some(trace), Some(parent)) => {
            info_span!("review", trace_id = trace, parent_id = parent)
        }
        _ => Span::none(),
    }
}

/// The metrics that handlers write.
#[derive(Debug)]
pub struct WebhookMetrics {
    registry: Registry,
    /// Answered reviews.
    pub reviews: Family<ReviewLabels, Counter>,
    /// Problems in denials, by rule.
    pub denials: Family<RuleLabel, Counter>,
    /// Problems that break-glass lifted, by rule.
    pub lifted: Family<RuleLabel, Counter>,
    /// When break-glass was last used, as Unix time. A counter by rule would not show the first use as an increase.
    pub last_lifted: Gauge,
    /// Violations of policies with the action Warn, by rule.
    pub policy_warnings: Family<RuleLabel, Counter>,
    /// The time from the last byte of the request to the answer.
    pub seconds: Family<PathLabel, Histogram>,
    refused: Family<RefusalLabel, Counter>,
    /// The expiry of the served certificate, as Unix time.
    pub certificate_not_after: Gauge,
    /// Renewed certificates that are not served because they do not verify.
    pub certificate_refusals: Counter,
    /// Connections that were closed for others, of reviews and of probes.
    pub evictions: Counter,
    /// Bytes of bodies in memory.
    pub body_bytes: Gauge,
    ages: Family<ResourceLabel, Gauge<f64, AtomicU64>>,
    /// Failed lists and watches.
    pub watch_failures: WatchFailures,
}

/// Labels of a review.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReviewLabels {
    /// The path of the webhook, such as `/mutate`.
    pub path: &'static str,
    /// CREATE, UPDATE, DELETE.
    pub operation: &'static str,
    /// Whether it was allowed: `true`, `false`.
    pub allowed: &'static str,
}

/// Label of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RuleLabel {
    /// Name of the rule.
    pub rule: &'static str,
}

/// The label of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PathLabel {
    /// The path of the webhook, such as `/mutate`.
    pub path: &'static str,
}

/// The label of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabel {
    /// [`crate::refusal::ReviewRefusal::reason`], `unreadable`, `panic`.
    reason: &'static str,
}

impl WebhookMetrics {
    /// Creates all metrics, at zero.
    pub fn new() -> Self {
        let mut registry = metrics::registry("addons_webhook");
        let reviews = Family::<ReviewLabels, Counter>::default();
        let denials = Family::<RuleLabel, Counter>::default();
        let lifted = Family::<RuleLabel, Counter>::default();
        let last_lifted = Gauge::default();
        let policy_warnings = Family::<RuleLabel, Counter>::default();
        let seconds =
            Family::<PathLabel, Histogram>::new_with_constructor(|| Histogram::new(BUCKETS));
        let refused = Family::<RefusalLabel, Counter>::default();
        let ages = Family::<ResourceLabel, Gauge<f64, AtomicU64>>::default();
        let evictions = Counter::default();
        let body_bytes = Gauge::default();
        let certificate_not_after = Gauge::default();
        let certificate_refusals = Counter::default();
        registry.register("reviews", "Answered reviews", reviews.clone());
        registry.register("denials", "Problems in denials by rule", denials.clone());
        registry.register(
            "break_glass",
            "Denials that break-glass lifted, by rule",
            lifted.clone(),
        );
        registry.register(
            "break_glass_last_timestamp_seconds",
            "When break-glass was last used; 0 = never",
            last_lifted.clone(),
        );
        registry.register(
            "policy_warnings",
            "What policies warned about, by rule",
            policy_warnings.clone(),
        );
        registry.register(
            "review_duration_seconds",
            "Time from the last byte of the request to the answer",
            seconds.clone(),
        );
        registry.register("refused", "Requests without a verdict", refused.clone());
        registry.register(
            "facts_age_seconds",
            "Time since the watch of a resource heard of the API server",
            ages.clone(),
        );
        registry.register(
            "body_bytes",
            "Bytes of reviews that are read or judged",
            body_bytes.clone(),
        );
        registry.register(
            "connections_evicted",
            "Connections that were closed for new ones",
            evictions.clone(),
        );
        registry.register(
            "certificate_not_after_timestamp_seconds",
            "When the served certificate expires",
            certificate_not_after.clone(),
        );
        registry.register(
            "certificate_refusals",
            "Rotated certificates that did not verify",
            certificate_refusals.clone(),
        );
        let watch_failures =
            WatchFailures::register(&mut registry, WatchedKind::ALL.map(WatchedKind::resource));
        Self {
            registry,
            reviews,
            denials,
            lifted,
            last_lifted,
            policy_warnings,
            seconds,
            refused,
            certificate_not_after,
            certificate_refusals,
            evictions,
            body_bytes,
            ages,
            watch_failures,
        }
    }

    /// Counts a request that got no verdict.
    pub fn count_refusal(&self, reason: &'static str) {
        self.refused.get_or_create(&RefusalLabel { reason }).inc();
    }

    /// Sets how long a watch has been silent.
    pub fn set_facts_age(&self, watched: WatchedKind, silent: Duration) {
        let resource = watched.resource().to_owned();
        let age = self.ages.get_or_create(&ResourceLabel { resource });
        age.set(silent.as_secs_f64());
    }

    /// Returns the OpenMetrics text.
    pub fn encode_text(&self) -> Result<String, std::fmt::Error> {
        metrics::encode_text(&self.registry)
    }
}
