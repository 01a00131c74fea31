//! A client that dies at any request of an operation on an add-on of thirty objects: the next run ends where an
//! undisturbed one would have (semantics 13).
//!
//! `FULL=1` runs every request, else `SEED` chooses some.

mod namespace;
mod stored;

use addons_tests::chaos::addon::NAME;
use addons_tests::chaos::matrix;
use addons_tests::chaos::operation::Operation;
use addons_tests::chaos::point::Point;
use addons_tests::chaos::rig::Rig;
use addons_tests::chaos::seed;
use addons_tests::proxy::{Action, Fault};
use anyhow::{Result, ensure};
use serde_json::Value;

/// Deaths of a client that has many requests under way.
const MANY: usize = 24;

/// Where a client dies.
#[derive(Debug)]
struct Death {
    at: Point,
    /// Whether the API server handled its last request, whose answer nobody read.
    delivered: bool,
}

impl Death {
    /// Every request, once delivered and once not.
    fn all(points: &[Point]) -> Vec<Self> {
        let deaths = points.iter().flat_map(|at| {
            [true, false].map(|delivered| Self {
                at: at.clone(),
                delivered,
            })
        });
        deaths.collect()
    }
}

/// One request at a time: always in the same order.
async fn one_at_a_time(operation: Operation, name: &'static str) -> Result<()> {
    let undisturbed = operation.undisturbed().await?;
    matrix::run(name, Death::all(&undisturbed.points), async |death| {
        let rig = undisturbed.rig("crash").await?;
        let stop = Action::Stop {
            delivered: death.delivered,
        };
        let stop = death.at.fault(stop, &rig.stage.namespace);
        one(operation, &rig, 1, stop, &undisturbed.state).await
    })
    .await
}

/// Many requests at a time: which one is the k-th differs from run to run.
async fn many_at_a_time(operation: Operation, name: &'static str) -> Result<()> {
    let undisturbed = operation.undisturbed().await?;
    let numbers = seed::numbers(undisturbed.points.len(), MANY, name);
    matrix::run(name, numbers, async |number| {
        let rig = undisturbed.rig("crash-many").await?;
        let stop = Action::Stop {
            delivered: number % 2 == 0,
        };
        one(
            operation,
            &rig,
            32,
            Fault::at(number + 1, stop),
            &undisturbed.state,
        )
        .await
    })
    .await
}

/// Whether it was stopped.
async fn one(
    operation: Operation,
    rig: &Rig,
    concurrency: usize,
    stop: Fault,
    wanted: &Value,
) -> Result<bool> {
    let line = operation.prepare(rig).await?;
    let disturbed = format!("{line} --concurrency {concurrency}");
    let is_stopped = rig.run_until(&disturbed, stop).await?;
    operation.again(rig, &line).await?;
    operation.ended_well(rig, wanted).await?;
    Ok(is_stopped)
}

#[tokio::test]
async fn install() -> Result<()> {
    one_at_a_time(Operation::Install, "crash::install").await
}

#[tokio::test]
async fn upgrade_with_prune() -> Result<()> {
    one_at_a_time(Operation::Upgrade, "crash::upgrade_with_prune").await
}

#[tokio::test]
async fn uninstall() -> Result<()> {
    one_at_a_time(Operation::Uninstall, "crash::uninstall").await
}

#[tokio::test]
async fn install_with_many_at_a_time() -> Result<()> {
    many_at_a_time(Operation::Install, "crash::install_with_many_at_a_time").await
}

#[tokio::test]
async fn upgrade_with_many_at_a_time() -> Result<()> {
    many_at_a_time(Operation::Upgrade, "crash::upgrade_with_many_at_a_time").await
}

#[tokio::test]
async fn uninstall_with_many_at_a_time() -> Result<()> {
    many_at_a_time(Operation::Uninstall, "crash::uninstall_with_many_at_a_time").await
}

/// Whoever comes next waits until the dead client's lock expires, and goes on.
#[tokio::test]
async fn the_lock_of_the_dead_expires() -> Result<()> {
    let operation = Operation::Upgrade;
    let undisturbed = operation.undisturbed().await?;
    let rig = undisturbed.rig("crash-expires").await?;
    let line = operation.prepare(&rig).await?;
    let stop = Fault::at(3, Action::Stop { delivered: true })
        .method("PATCH")
        .writes();
    ensure!(rig.run_until(&line, stop).await?, "it was not stopped");
    let next = rig.stage.run(&line).await?.done()?;
    ensure!(
        next.stderr.contains("waiting for") && next.stderr.contains("kubectl-addons, pid"),
        "{}",
        next.stderr
    );
    let record = rig.stage.record(NAME).await?;
    ensure!(record["status"]["operation"].is_null(), "{record:#}");
    operation.ended_well(&rig, &undisturbed.state).await
}
