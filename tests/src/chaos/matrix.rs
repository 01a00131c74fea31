//! Many cases of one test, some at a time.

use std::fmt::Debug;

use super::seed;
use crate::tally::Tally;
use anyhow::{Result, bail, ensure};
use futures::{StreamExt as _, stream};

/// Cases at a time: each waits most of the time for programs that it started.
const AT_A_TIME: usize = 3;
/// Cases of a matrix that the first tier runs.
const FEW: usize = 4;
/// Failures that are told in full.
const TOLD: usize = 5;

/// The death of a client at each of so many requests, before and after the server has it.
#[must_use]
pub fn deaths(requests: usize) -> Vec<(usize, bool)> {
    let numbers = 1..=requests;
    numbers
        .flat_map(|number| [(number, false), (number, true)])
        .collect()
}

/// Runs the cases, also after a failure, and fails with those that failed: all with `FULL=1`, otherwise a few that `SEED` chooses.
/// A case returns whether its request came, which means that something was broken; the test also fails where that happened in less
/// than half of the cases.
///
/// # Errors
/// Where there is no case, and as above.
pub async fn run<C: Debug>(
    name: &'static str,
    cases: Vec<C>,
    one: impl AsyncFn(&C) -> Result<bool>,
) -> Result<()> {
    let mut tally = Tally::new(name);
    let whole = cases.len();
    let cases = seed::choose(cases, FEW, name);
    let all = cases.len();
    if all < whole {
        tally.note(format!("{} cases more with FULL=1", whole - all));
    }
    let (mut failures, mut broken) = (Vec::new(), 0);
    let one = &one;
    let mut running = stream::iter(cases)
        .map(async |case| (one(&case).await, case))
        .buffer_unordered(AT_A_TIME);
    while let Some((result, case)) = running.next().await {
        match result {
            Ok(true) => {
                broken += 1;
                tally.ran();
            }
            Ok(false) => tally.left_out(format!("{case:?}: the request did not come")),
            Err(error) => failures.push(format!("{case:?}: {error:#}")),
        }
    }
    if failures.is_empty() {
        ensure!(
            broken > 0 && 2 * broken >= all,
            "only {broken} of {all} requests came"
        );
        return Ok(());
    }
    let told = failures.iter().take(TOLD).cloned().collect::<Vec<_>>();
    bail!("{} cases failed\n{}", failures.len(), told.join("\n\n"))
}
