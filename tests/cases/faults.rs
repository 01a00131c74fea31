//! One request that goes wrong: what can be tried again is, and everything else is done by the next run.
//!
//! `FULL=1` breaks every request in every way, else `SEED` chooses some.

mod refused;
mod writes;

use addons_tests::chaos::matrix;
use addons_tests::chaos::operation::Operation;
use addons_tests::chaos::point::Point;
use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::{Action, Fault};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// What goes wrong, and whether the same run gets over it.
const FAULTS: [(Action, bool); 8] = [
    (answer(429, Some(1)), true),
    (answer(429, None), true),
    (answer(503, None), true),
    (Action::Cut { delivered: true }, true),
    (Action::Cut { delivered: false }, true),
    (Action::Hang { delivered: true }, true),
    (Action::Hang { delivered: false }, true),
    // The server may answer 500 to what it will never do: this is told to the user, who runs it again.
    (answer(500, None), false),
];

/// One broken request.
#[derive(Debug)]
struct Case {
    at: Point,
    action: Action,
    gets_over_it: bool,
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
        gets_over_it: false,
    });
    matrix::run("faults::namespace", cases.collect(), async |case| {
        case.run(operation, &undisturbed.state).await
    })
    .await
}

async fn faults(operation: Operation, name: &'static str) -> Result<()> {
    let undisturbed = operation.undisturbed().await?;
    let mut cases = Vec::new();
    for (action, gets_over_it) in FAULTS {
        cases.extend(undisturbed.points.iter().map(|at| Case {
            at: at.clone(),
            action: action.clone(),
            gets_over_it,
        }));
    }
    matrix::run(name, cases, async |case| {
        case.run(operation, &undisturbed.state).await
    })
    .await
}

impl Case {
    async fn run(&self, operation: Operation, wanted: &Value) -> Result<bool> {
        let rig = Rig::new("fault").await?;
        let fault = self.at.fault(self.action.clone(), &rig.stage.namespace);
        one(operation, &rig, fault, self.gets_over_it, wanted).await
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
