//! How a benchmark begins and ends.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

/// Runs a benchmark where cargo asks for one, and says what went wrong.
pub async fn run(measure: impl Future<Output = Result<()>>) -> ExitCode {
    // `cargo test --all-targets` runs benchmarks too, without this flag: nothing is timed there.
    if !std::env::args().any(|arg| arg == "--bench") {
        return ExitCode::SUCCESS;
    }
    match measure.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::stderr().write_all(format!("error: {error:#}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}
