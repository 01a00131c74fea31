//! Executes the plans of a command: records the operations, applies objects in the order of the graph, waits, prunes, and records the
//! results.

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

/// Runs the plans of a command concurrently. The parts of `graph` are the `tasks`; each object begins when the graph allows it. Returns the
/// result of each task, in the order of `tasks`. `events` receives the events of every task with the task's index.
///
/// A record without a resourceVersion is created; a record whose spec, labels, annotations or finalizers differ from the stored ones is
/// replaced. Both happen before the first write to other objects, and admission may refuse them ([`EngineError::Denied`]). Then one status
/// write takes the lock and records the union inventory. After applying, waiting and pruning, the last status write records the exact
/// inventory. An uninstallation asks admission first whether the record may be deleted, and deletes it last. Locks are taken one after
/// another, in the order of the installations' names, so that two clients never wait for each other.
///
/// A failure stops the objects that come after it in the graph and the pruning of its own add-on, and nothing else. A task with an
/// automatic rollback (`backs`, in the order of `tasks`) is rolled back if it fails before pruning begins: under the same lock, with the
/// whole timeout again.
///
/// A task with nothing to do (an empty plan, the same target, an unchanged spec) reads the record once and writes nothing. A task that
/// waited for another client that made the same change reports the result of that client.
///
/// Dropping the future leaves records from which the next run can continue after at most 15 seconds.
///
/// # Errors
/// The result of a task is an error if its operation could not begin or could not write its record: [`EngineError::Stale`] if the record
/// changed after the plan was made, [`EngineError::Locked`] if another client holds the lock. Failures of single objects are in the
/// [`Report`].
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
    // The mask of each part is applied to everything that is shown or recorded, here and in the operation.
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

/// Returns the deadline of work that begins now.
fn deadline(options: &ExecuteOptions) -> Instant {
    // The timeout is capped at a year, because the sum must not overflow.
    Instant::now() + options.timeout.min(Duration::from_secs(365 * 24 * 3600))
}
