//! One request that goes wrong: what can be tried again is, and everything else is done by the next run.
//!
//! `FULL=1` breaks every request in two ways: one in which the server has not seen it, and one in which nobody knows. `SEED` says in which
//! of them, and without `FULL=1` also which requests.

mod refused;
mod writes;

use addons_tests::chaos::matrix;
use addons_tests::chaos::operation::{Operation, Undisturbed};
use addons_tests::chaos::point::Point;
use addons_tests::chaos::rig::Rig;
use addons_tests::chaos::seed;
use addons_tests::proxy::{Action, Fault};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// What goes wrong without the server having the request. The same run gets over it.
const UNSEEN: [Action; 5] = [
    answer(429, Some(1)),
    Action::Cut { delivered: false },
    answer(503, None),
    Action::Hang { delivered: false },
    answer(429, None),
];

/// What goes wrong although the server may have done what it was asked for.
const UNKNOWN: [Action; 3] = [
    Action::Cut { delivered: true },
    Action::Hang { delivered: true },
    // The server may answer 500 to what it will never do: this is told to the user, who runs it again.
    answer(500, None),
];

/// One broken request.
#[derive(Debug)]
struct Case {
    at: Point,
    action: Action,
}

const fn answer(status: u16, retry_after: Option<u32>) -> Action {
    Action::Answer {
        status,
        retry_after,
    }
}

/// A server that fails for a moment is no reason to leave the namespace behind and forget the installation.
#[tokio::test]
async fn a_namespace_that_could_not_be_removed_is_removed_by_the_next_run() -> Result<()> {
    let operation = Operation::Uninstall;
    let undisturbed = operation.undisturbed().await?;
    let points = undisturbed.points.iter();
    let points = points.filter(|at| at.is_for("/api/v1/namespaces/UNIQUE-target"));
    let cases = points.map(|at| Case {
        at: at.clone(),
        action: answer(500, None),
    });
    matrix::run("faults::namespace", cases.collect(), async |case| {
        case.run(operation, &undisturbed).await
    })
    .await
}

async fn faults(operation: Operation, name: &'static str) -> Result<()> {
    let undisturbed = operation.undisturbed().await?;
    let first = usize::try_from(seed::seed())?;
    let numbered = undisturbed.points.iter().zip(first..);
    // The ways differ in length: in the long run, each request meets each way, beside each of the others.
    let cases = numbered.flat_map(|(at, number)| {
        let unseen = &UNSEEN[number % UNSEEN.len()];
        let unknown = &UNKNOWN[number % UNKNOWN.len()];
        [unseen, unknown].map(|action| Case {
            at: at.clone(),
            action: action.clone(),
        })
    });
    let cases = cases.collect();
    matrix::run(name, cases, async |case| {
        case.run(operation, &undisturbed).await
    })
    .await
}

impl Case {
    async fn run(&self, operation: Operation, undisturbed: &Undisturbed) -> Result<bool> {
        let rig = undisturbed.rig("fault").await?;
        let fault = self.at.fault(self.action.clone(), &rig.stage.namespace);
        // The same run gets over everything but that.
        let gets_over_it = !matches!(self.action, Action::Answer { status: 500, .. });
        one(operation, &rig, fault, gets_over_it, &undisturbed.state).await
    }
}

/// A run with a fault ends where an undisturbed one does, by itself or with the next run. Whether its request came.
async fn one(
    operation: Operation,
    rig: &Rig,
    fault: Fault,
    gets_over_it: bool,
    wanted: &Value,
) -> Result<bool> {
    let line = operation.prepare(rig).await?;
    rig.proxy.fault(fault);
    // The bound of a request that hangs, and long enough for one that does not.
    let disturbed = format!("{line} --concurrency 1 --request-timeout 1500ms");
    let before = rig.proxy.hits();
    let output = rig.run(&disturbed).await?;
    let is_broken = rig.proxy.hits() > before;
    let said = output.stderr.clone();
    if gets_over_it {
        output.done()?;
    } else if output.code != 0 {
        // Of an answer to a Secret only the code is repeated.
        let words = ["the proxy of the tests answers", "HTTP 500"];
        ensure!(
            output.code == 1 && words.iter().any(|words| output.stderr.contains(words)),
            "exit code {}\n{}",
            output.code,
            output.stderr
        );
        operation.again(rig, &line).await?;
    }
    let ended = operation.ended_well(rig, wanted).await;
    ended.context(said)?;
    Ok(is_broken)
}

#[tokio::test]
async fn install() -> Result<()> {
    faults(Operation::Install, "faults::install").await
}

#[tokio::test]
async fn upgrade_with_prune() -> Result<()> {
    faults(Operation::Upgrade, "faults::upgrade_with_prune").await
}

#[tokio::test]
async fn uninstall() -> Result<()> {
    faults(Operation::Uninstall, "faults::uninstall").await
}
