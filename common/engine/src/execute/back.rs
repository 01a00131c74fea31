//! The automatic rollback of a failed operation (`--atomic`): a second plan under the same lock.

use futures::future::join;
use tokio::sync::{mpsc, oneshot};

use common::api::installation::OperationRecord as Recorded;

use super::super::begin::needs_write;
use super::super::error::{EngineError, StaleReason};
use super::super::event::Event;
use super::super::lock::{self, Lock};
use super::super::report::{Back, Report};
use super::super::task::{PlanBack, Task, WayBack};
use super::super::{revisions, status};
use super::operation::{Afterwards, RunningOperation, Worked};
use super::part::PartNews;
use super::scheduler::Scheduler;
use super::{deadline, restore};

impl RunningOperation<'_> {
    /// Records the failure, then plans and executes the rollback. The lock is held from the beginning of the failed operation to the end of
    /// the rollback, so that no other client acts on the state between.
    pub(super) async fn go_back(
        &self,
        plan_back: PlanBack<'_>,
        mut lock: Lock,
        failed: Worked,
    ) -> Result<Report, EngineError> {
        let Worked {
            mut report,
            namespace_uid,
            ..
        } = failed;
        self.finish(&mut lock, namespace_uid, &report, Afterwards::Held)
            .await?;
        let record = lock.record.clone();
        let kept = revisions::store_revision(self.cluster, &self.task, &record, self.events);
        let kept = lock
            .run_renewing(self.cluster, self.task.journal, kept)
            .await;
        let begun = match kept {
            Ok(()) => self.begin_back(plan_back, &mut lock).await,
            Err(lost) => Err(lost.to_string()),
        };
        let back = match begun {
            Ok(way) => self.way_back(&way, &mut lock).await,
            Err(why) => {
                // The failed state stays, as without a rollback. If the lock is lost, it belongs to another client.
                let _ = lock
                    .write(self.cluster, |status| status.operation = None)
                    .await;
                Err(why)
            }
        };
        report.back = Some(match back {
            Ok(report) => Back::Executed(Box::new(report)),
            Err(why) => Back::Impossible(self.task.plan.mask.mask_text(&why)),
        });
        report.record = Some(lock.record);
        Ok(report)
    }

    /// Plans the rollback and records its beginning: the spec, then the union inventory.
    async fn begin_back(
        &self,
        plan_back: PlanBack<'_>,
        lock: &mut Lock,
    ) -> Result<WayBack, String> {
        let planned = lock
            .run_renewing(self.cluster, self.task.journal, plan_back)
            .await;
        let way = planned.map_err(|lost| lost.to_string())??;
        let begun = self.record_beginning(&way, lock).await;
        begun.map_err(|error| error.to_string())?;
        Ok(way)
    }

    pub(super) async fn record_beginning(
        &self,
        way: &WayBack,
        lock: &mut Lock,
    ) -> Result<(), EngineError> {
        status::check_size(&way.plan)?;
        loop {
            if lock.record.metadata.generation != lock.generation {
                // Another client that changed the spec wants something else.
                return Err(lock::stale_error(&lock.record, StaleReason::SpecChanged));
            }
            if !needs_write(&way.wanted, &lock.record) {
                break;
            }
            match restore::put(self.cluster, &way.wanted, lock).await {
                Ok(()) => break,
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        let now = self.cluster.home().now();
        lock.write_and_renew(self.cluster, |status| {
            let operation = status.operation.take();
            let mut begun =
                status::begin_status(Some(status), &way.plan, &self.options.choices, now);
            begun.operation = operation.map(|operation| Recorded {
                verb: way.plan.verb.into(),
                target: way.plan.to.clone(),
                ..operation
            });
            *status = begun;
        })
        .await?;
        self.task.journal.begin(&way.plan);
        Ok(())
    }

    /// Applies, waits and prunes as every operation does, with the whole timeout again.
    async fn way_back(&self, way: &WayBack, lock: &mut Lock) -> Result<Report, String> {
        let begun = tokio::time::Instant::now();
        let deadline = deadline(self.options);
        let mask = &way.plan.mask;
        let events = |event: Event| (self.events)(event.masked(mask));
        let of_part = |_: usize, event: Event| events(event);
        let task = Task {
            wanted: &way.wanted,
            plan: &way.plan,
            journal: self.task.journal,
            fallback: None,
            entry: way.entry.as_ref(),
            outside: way.outside.as_deref(),
        };
        let (news, inbox) = mpsc::unbounded_channel();
        let (handle, applied) = oneshot::channel();
        let tasks = [task];
        let wait = self.options.wait;
        let scheduler = Scheduler::new(self.cluster, &tasks, &way.graph, wait, deadline, &of_part);
        let operation = RunningOperation {
            part: 0,
            cluster: self.cluster,
            task,
            options: self.options,
            deadline,
            events: &events,
            news,
            turn: self.turn,
            beginnings: self.beginnings,
        };
        let working = async {
            let worked = operation.work_under(lock, applied).await;
            // Has no effect on objects that have ended.
            let why = "it is gone".to_owned();
            operation.send(PartNews::GiveUp { part: 0, why });
            worked
        };
        let (worked, ()) = join(working, scheduler.run(inbox, vec![handle])).await;
        let Worked {
            mut report,
            namespace_uid,
            ..
        } = worked.map_err(|error| error.to_string())?;
        let finished = operation.finish(lock, namespace_uid, &report, Afterwards::Free);
        finished.await.map_err(|error| error.to_string())?;
        revisions::store_revision(self.cluster, &task, &lock.record, &events).await;
        report.note_unwritten(&way.plan);
        report.elapsed = begun.elapsed();
        Ok(report)
    }
}
