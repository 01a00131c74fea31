//! Logs as JSON lines on stderr, with time and level. They contain no values of objects.

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts logging as JSON lines on stderr. `RUST_LOG` chooses by module and level (`warn,addons_webhook=debug`); the default is INFO, and
/// WARN for the server library. The client of the API server never logs, because it logs whole answers that it cannot read, including
/// values.
pub fn start() {
    let chosen = std::env::var("RUST_LOG").ok();
    let chosen = chosen.and_then(|chosen| chosen.parse::<Targets>().ok());
    let filter = chosen.unwrap_or_else(|| {
        Targets::new()
            .with_default(LevelFilter::INFO)
            .with_target("actix_server", LevelFilter::WARN)
    });
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_span_list(false)
        .with_writer(std::io::stderr);
    let quotes_nothing = filter_fn(|event| !event.target().starts_with("kube_client"));
    // This fails only if the process already logs.
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(filter.and(quotes_nothing)))
        .try_init();
}
