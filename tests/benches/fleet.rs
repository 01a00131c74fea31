//! `cargo bench --bench fleet`: what `reconcile --watch` takes over 200 clusters with 10 add-ons each, one of them behind a proxy that
//! delays each answer by 2 seconds.
//!
//! `FLEET_CLUSTERS` is how many clusters there are, 200 where it is not set; `FLEET_WINDOW_SECONDS` how long nothing changes, 180.

#[path = "fleet/bench.rs"]
mod bench;
#[path = "loop/process.rs"]
mod process;
#[path = "fleet/report.rs"]
mod report;
#[path = "fleet/world.rs"]
mod world;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// The clusters of the goals.
const CLUSTERS: u64 = 200;
/// Long enough for two idle passes, and over before live objects are read again.
const WINDOW: u64 = 180;

#[tokio::main]
async fn main() -> ExitCode {
    addons_tests::bench::run(run()).await
}

async fn run() -> Result<()> {
    let clusters = usize::try_from(given("FLEET_CLUSTERS", CLUSTERS)?)?;
    ensure!(clusters > 1, "one of them is slow, and delays no other");
    let window = Duration::from_secs(given("FLEET_WINDOW_SECONDS", WINDOW)?);
    let figures = bench::measure(clusters, window).await?;
    let _ = std::io::stdout().write_all(report::table(&figures).as_bytes());
    Ok(())
}

fn given(name: &str, default: u64) -> Result<u64> {
    match std::env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name}={text}")),
        Err(_) => Ok(default),
    }
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
