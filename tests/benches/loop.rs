//! `cargo bench --bench loop`: what `reconcile --watch` and `sync --watch` take while nothing changes, over 40 add-ons of 1,700
//! objects, how long a deleted Deployment is away, and how long a killed leader is not replaced.
//!
//! `LOOP_WINDOW_SECONDS` is how long nothing changes, 300 where it is not set.

#[path = "loop/addons.rs"]
mod addons;
#[path = "loop/bench.rs"]
mod bench;
#[path = "loop/process.rs"]
mod process;
#[path = "loop/report.rs"]
mod report;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// The window of the goals.
const WINDOW: u64 = 300;

#[tokio::main]
async fn main() -> ExitCode {
    addons_tests::bench::run(run()).await
}

async fn run() -> Result<()> {
    let window = match std::env::var("LOOP_WINDOW_SECONDS") {
        Ok(text) => text
            .parse()
            .with_context(|| format!("LOOP_WINDOW_SECONDS={text}"))?,
        Err(_) => WINDOW,
    };
    let window = Duration::from_secs(window);
    let rows = [bench::reconcile(window).await?, bench::sync(window).await?];
    let _ = std::io::stdout().write_all(report::table(window, &rows).as_bytes());
    Ok(())
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
