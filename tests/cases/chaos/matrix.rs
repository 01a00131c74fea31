//! Many cases of one test, some at a time.

use std::fmt::Debug;

use addons_tests::tally::Tally;
use anyhow::{Result, bail};
use futures::{StreamExt as _, stream};

/// Cases at a time: each waits most of the time for programs that it started.
const AT_A_TIME: usize = 3;
/// Failures that are told in full.
const TOLD: usize = 5;

/// Runs all cases, whatever becomes of them, and fails with those that failed.
pub async fn run<C: Debug>(
    name: &'static str,
    cases: Vec<C>,
    one: impl AsyncFn(&C) -> Result<()>,
) -> Result<()> {
    let mut tally = Tally::new(name);
    let mut failures = Vec::new();
    let one = &one;
    let mut running = stream::iter(cases)
        .map(async |case| (one(&case).await, case))
        .buffer_unordered(AT_A_TIME);
    while let Some((result, case)) = running.next().await {
        tally.ran();
        failures.extend(result.err().map(|error| format!("{case:?}: {error:#}")));
    }
    if failures.is_empty() {
        return Ok(());
    }
    let told = failures.iter().take(TOLD).cloned().collect::<Vec<_>>();
    bail!("{} cases failed\n{}", failures.len(), told.join("\n\n"))
}
