//! Executes the plans of a command: record, apply in the order of the graph, wait, prune, record.

mod back;
mod beginnings;
mod closing;
mod ending;
mod helm;
mod operation;
mod part;
mod restore;
mod scheduler;
mod target;
mod watches;

use std::time::Duration;

use futures::future::{join, join_all};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::Instant;

use addons_plan::graph::Graph;

use super::cluster::Cluster;
use super::error::EngineError;
use super::event::Event;
use super::report::{Back, Report};
use super::task::{ExecuteOptions, PlanBack, Task};
use beginnings::Beginnings;
use operation::RunningOperation;
use scheduler::Scheduler;

/// Runs the plans of a command at the same time, each object when `graph` lets it begin (its parts are the `tasks`).
/// Returns the result of each task, in their order. `events` gets the events of every task with its index.
///
/// A record without resourceVersion is created, one with another spec, labels, annotations or finalizers than the stored one
/// is replaced (both before the first write to other objects; the API server's admission may refuse here:
/// [`EngineError::Denied`]). Then lock and union inventory in one status write, applies, waits, prune, exact status.
/// For an uninstallation the record is deleted last (its admission is asked first). Locks are taken one after another in the
/// order of their names, so that two clients never wait for each other.
///
/// A failure stops what comes after it in the graph, and the prune of its own add-on; nothing else. A task that has a way back
/// (`backs`, by their index) goes it by itself where it fails before anything is pruned: under the same lock, with the same time again.
///
/// A task that finds nothing to do (an empty plan, the same target, an unchanged spec) reads the record once and
/// writes nothing. One that had to wait for another holder who did the same reports that one's result.
///
/// Dropping the future leaves records from which the next run continues, at the latest 15 s later.
///
/// # Errors
/// Of single tasks: errors before or in the record ([`EngineError::Stale`] where it changed after the plan,
/// [`EngineError::Locked`]). What happens to single objects is in the [`Report`].
pub async fn execute(
    cluster: &Cluster,
    tasks: &[Task<'_>],
    graph: &Graph,
    backs: Vec<Option<PlanBack<'_>>>,
    options: &ExecuteOptions,
    events: &(dyn Fn(usize, Event) + Send + Sync),
) -> Vec<Result<Report, EngineError>> {
    let begun = Instant::now();
    let deadline = deadline(options);
    // Whatever is shown or recorded of a part goes through its mask, here and in the operation.
    let events = &|part: usize, event: Event| {
        if let Some(task) = tasks.get(part) {
            events(part, event.masked(&task.plan.mask));
        }
    };
    let reporters: Vec<_> = (0..tasks.len())
        .map(|part| move |event| events(part, event))
        .collect();
    let (news, inbox) = mpsc::unbounded_channel();
    let (handles, outboxes): (Vec<_>, Vec<_>) = tasks.iter().map(|_| oneshot::channel()).unzip();
    let scheduler = Scheduler::new(cluster, tasks, graph, options.wait, deadline, events);
    let scheduling = scheduler.run(inbox, handles);

    let turn = Mutex::new(());
    let beginnings = Beginnings::new(tasks);
    let parts = tasks.iter().zip(outboxes).zip(&reporters).enumerate();
    let backs = backs.into_iter().chain(std::iter::repeat_with(|| None));
    let mut operations: Vec<_> = parts
        .zip(backs)
        .map(|((part, ((task, applied), events)), back)| {
            let operation = RunningOperation {
                part,
                cluster,
                task: *task,
                options,
                deadline,
                events,
                news: news.clone(),
                turn: &turn,
                beginnings: &beginnings,
            };
            (&task.plan.installation, part, operation.run(applied, back))
        })
        .collect();
    drop(news);
    operations.sort_by_key(|(name, part, _)| (*name, *part));
    let operations = operations
        .into_iter()
        .map(|(_, part, operation)| async move {
            let report = operation.await.map(|mut report| {
                let back = report.back.as_ref().map_or(Duration::ZERO, Back::elapsed);
                report.elapsed = begun.elapsed().saturating_sub(back);
                report
            });
            (part, report)
        });
    let ((), mut reports) = join(scheduling, join_all(operations)).await;
    reports.sort_by_key(|(part, _)| *part);
    reports.into_iter().map(|(_, report)| report).collect()
}

/// When work that begins now has to end.
fn deadline(options: &ExecuteOptions) -> Instant {
    // A time-out of centuries counts as none; the sum must not overflow.
    Instant::now() + options.timeout.min(Duration::from_secs(365 * 24 * 3600))
}
