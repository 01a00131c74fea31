//! Metrics in the OpenMetrics format.

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// Creates a registry for metrics whose names begin with `prefix`. It has the metric `PREFIX_build_info`, whose label is the release.
#[must_use]
pub fn registry(prefix: &str) -> Registry {
    let mut registry = Registry::with_prefix(prefix);
    let release = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "The release of this process", release);
    registry
}

/// Returns the OpenMetrics text.
///
/// # Errors
/// None are known: the text is written into memory.
pub fn encode_text(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    text::encode(&mut text, registry)?;
    Ok(text)
}

/// Failed lists and watches, by resource.
#[derive(Clone, Debug, Default)]
pub struct WatchFailures(Family<ResourceLabel, Counter>);

/// The label of a watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ResourceLabel {
    /// The resource in plural, as the API server calls it.
    pub resource: String,
}

impl WatchFailures {
    /// Registers the metric, at zero for each of these resources: the first failure has to count as an increase.
    pub fn register<'a>(
        registry: &mut Registry,
        resources: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let failures = Self::default();
        for resource in resources {
            let resource = resource.to_owned();
            let _ = failures.0.get_or_create(&ResourceLabel { resource });
        }
        registry.register(
            "watch_failures",
            "Lists and watches that failed",
            failures.0.clone(),
        );
        failures
    }

    /// Counts a failure.
    pub fn count(&self, resource: &str) {
        let resource = resource.to_owned();
        self.0.get_or_create(&ResourceLabel { resource }).inc();
    }
}
