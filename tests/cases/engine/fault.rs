//! One request that goes wrong: what can be tried again is, and everything else is done by the next run.

use addons_tests::proxy::{Action, Fault};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::operation::Operation;
use super::rig::Rig;
use super::seed;
use super::state::state;

/// What goes wrong, and whether the same run gets over it.
const FAULTS: [(Action, bool); 6] = [
    (answer(429, Some(1)), true),
    (answer(429, None), true),
    (answer(503, None), true),
    (Action::Cut { delivered: true }, true),
    (Action::Cut { delivered: false }, true),
    // The server may answer 500 to what it will never do: this is told to the user, who runs it again.
    (answer(500, None), false),
];

const fn answer(status: u16, retry_after: Option<u32>) -> Action {
    Action::Answer {
        status,
        retry_after,
    }
}

async fn faults(operation: Operation, name: &'static str, salt: u64) -> Result<()> {
    let mut tally = Tally::new(name);
    let mut failures = Vec::new();
    let (wanted, requests, _) = operation.undisturbed().await?;
    for (salt, (action, gets_over_it)) in (salt..).zip(FAULTS) {
        for request in seed::choose(requests, 1, salt) {
            let case = format!("{operation:?}, {action:?} at request {request} of {requests}");
            let ended = one(
                operation,
                Fault::at(request, action.clone()),
                gets_over_it,
                &wanted,
            )
            .await;
            failures.extend(ended.err().map(|error| format!("{case}: {error}")));
            tally.ran();
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// A run with a fault ends where an undisturbed one does, by itself or with the next run.
async fn one(operation: Operation, fault: Fault, gets_over_it: bool, wanted: &Value) -> Result<()> {
    let rig = Rig::new("fault").await?;
    let line = operation.prepare(&rig).await?;
    rig.proxy.fault(fault);
    let output = rig.run(&line).await?;
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
        operation.again(&rig, &line).await?;
    }
    let found = state(&rig.stage).await?;
    ensure!(
        found == *wanted,
        "found:\n{found:#}\ninstead of:\n{wanted:#}"
    );
    Ok(())
}

#[tokio::test]
async fn install() -> Result<()> {
    faults(Operation::Install, "engine::fault::install", 10).await
}

#[tokio::test]
async fn upgrade_with_prune() -> Result<()> {
    faults(Operation::Upgrade, "engine::fault::upgrade_with_prune", 20).await
}

#[tokio::test]
async fn uninstall() -> Result<()> {
    faults(Operation::Uninstall, "engine::fault::uninstall", 30).await
}

/// The writes of the record, whichever requests a seed chooses.
#[tokio::test]
async fn writes_of_the_record() -> Result<()> {
    let mut tally = Tally::new("engine::fault::writes_of_the_record");
    let (spec, status) = (
        "/addoninstallations/small?",
        "/addoninstallations/small/status?",
    );
    let writes = [
        (Operation::Install, 1, "POST", "/addoninstallations?"),
        (Operation::Upgrade, 1, "PUT", spec),
        // The lock, and the end of the operation.
        (Operation::Upgrade, 1, "PUT", status),
        (Operation::Upgrade, 2, "PUT", status),
        // The dry run, and the deletion.
        (Operation::Uninstall, 1, "DELETE", "/addoninstallations/"),
        (Operation::Uninstall, 2, "DELETE", "/addoninstallations/"),
    ];
    for (operation, number, method, path) in writes {
        let (wanted, ..) = operation.undisturbed().await?;
        for delivered in [true, false] {
            let fault = Fault::at(number, Action::Cut { delivered });
            one(operation, fault.method(method).path(path), true, &wanted)
                .await
                .with_context(|| {
                    format!("{operation:?}, {method} {path} {number}, delivered: {delivered}")
                })?;
            tally.ran();
        }
    }
    Ok(())
}
