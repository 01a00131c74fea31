//! Performs the closing steps of a plan, stage after stage. A stage begins only if everything before it succeeded.

use futures::future::join_all;
use futures::{StreamExt as _, stream};
use tokio::time::Instant;

use addons_plan::closing::ClosingStep;
use addons_plan::{Moving, Target};

use super::super::apply::giving::Giving;
use super::super::migrate::Migrator;
use super::super::report::{EndedStep, Failure, Report, StepEnd};
use super::super::{annotation, aside, prune};
use super::operation::RunningOperation;

impl RunningOperation<'_> {
    /// Performs the closing steps until one fails: the failed object may still need what later steps change. Returns whether a stage has
    /// begun after which the operation cannot be rolled back.
    pub(super) async fn close(&self, report: &mut Report) -> bool {
        let (mut is_final, mut is_deleting) = (false, false);
        let mut kept = Vec::new();
        for stage in self.task.plan.stages() {
            let Some(first) = stage.first() else {
                continue;
            };
            let deletes = matches!(first, ClosingStep::Delete { .. } | ClosingStep::Release(_));
            is_deleting |= deletes && report.is_done();
            // The first three observe the deadline themselves; releases belong to the deletions before them.
            let is_silent = match first {
                ClosingStep::Run { .. } | ClosingStep::Rewrite(_) | ClosingStep::HandOver(_) => {
                    true
                }
                ClosingStep::Release(_) => is_final,
                _ => false,
            };
            if is_silent && !report.is_done() {
                continue;
            }
            let blocked = self.blocked(report, deletes && is_deleting);
            if let Some(why) = blocked.filter(|_| !is_silent) {
                // If the operation only timed out, nothing else would report that it is incomplete.
                for step in stage.iter().filter(|step| !step.is_void()) {
                    report.note(step.key(), StepEnd::Skipped(why.clone()));
                }
                continue;
            }
            is_final |= !is_silent;
            self.perform_stage(stage, &mut kept, report).await;
        }
        is_final
    }

    /// Returns why a stage may not begin. `after_deletions`: only deletions can have failed or be pending.
    fn blocked(&self, report: &Report, after_deletions: bool) -> Option<String> {
        match (
            report.failed().next(),
            report.not_ready().next(),
            report.skipped().next(),
        ) {
            (Some(failure), ..) if after_deletions => {
                Some(format!("{} could not be deleted", failure.key))
            }
            (Some(failure), ..) => Some(format!("{} failed", failure.key)),
            (_, Some((key, _)), _) if after_deletions => Some(format!("{key} is still going")),
            (_, Some((key, _)), _) => Some(format!("{key} is not ready")),
            (_, _, Some((_, why))) if after_deletions => Some(why.to_owned()),
            (_, _, Some((key, _))) => Some(format!("{key} was skipped")),
            _ if Instant::now() >= self.deadline => Some("timed out".to_owned()),
            _ => None,
        }
    }

    /// Performs the steps of a stage, and waits until the objects that it deletes are deleted. Adds to `kept` the objects that stay
    /// although the plan deletes them.
    async fn perform_stage(
        &self,
        stage: &[ClosingStep],
        kept: &mut Vec<Target>,
        report: &mut Report,
    ) {
        use ClosingStep::{Discard, HandOver, Restore, Rewrite, SetAside};
        let at_once = match stage.first() {
            Some(Rewrite(_) | HandOver(_) | SetAside(_) | Restore(_) | Discard(_)) => 1,
            _ => self.cluster.concurrency(),
        };
        let before = kept.clone();
        let mut performing = stream::iter(stage)
            .map(async |step| (step, self.perform(step, &before).await))
            .buffer_unordered(at_once);
        let mut held = Vec::new();
        while let Some((step, ended)) = performing.next().await {
            for EndedStep { key, end } in &ended {
                match (end, step) {
                    (StepEnd::Held(finalizers), ClosingStep::Delete { deletion, .. }) => {
                        held.push((deletion, finalizers.clone()));
                    }
                    (StepEnd::Retained, ClosingStep::Delete { deletion, .. }) => {
                        kept.push(deletion.target.clone());
                    }
                    (StepEnd::Deleted | StepEnd::Forgotten, _) => self.task.journal.remove([key]),
                    _ => {}
                }
            }
            report.ended.extend(ended);
            // After a failure, the remaining records of another tool stay unchanged: the record by which the tool finds the rest comes
            // last.
            if matches!(step, SetAside(_) | Restore(_) | Discard(_)) && !report.is_done() {
                break;
            }
        }
        let waiting = held.into_iter().map(async |(deletion, finalizers)| {
            let (cluster, deadline) = (self.cluster, self.deadline);
            let held =
                prune::wait_until_deleted(cluster, deletion, finalizers, deadline, self.events)
                    .await;
            (&deletion.target.key, held)
        });
        for (key, held) in join_all(waiting).await {
            match held {
                Some(readiness) => report.note(key.clone(), StepEnd::NotReady(readiness)),
                None => self.task.journal.remove([key]),
            }
        }
    }

    /// Performs one step. `kept`: objects that stay although an earlier stage was to delete them.
    async fn perform(&self, step: &ClosingStep, kept: &[Target]) -> Vec<EndedStep> {
        let (cluster, plan, key) = (self.cluster, self.task.plan, step.key());
        let name = &plan.installation;
        let done = |()| StepEnd::Done;
        let ended = match step {
            ClosingStep::Run { release, records } => {
                return self.run_helm(release, records, key).await;
            }
            ClosingStep::Rewrite(migration) => {
                let migrator = Migrator::of(cluster, plan, self.deadline, self.events);
                return migrator.run(migration, self.task.journal).await;
            }
            // The installation that takes objects over may be unable to begin: its lock is held, or admission refuses it. Then this
            // operation is incomplete, and the objects stay recorded here. Once the other installation has recorded them, it continues the
            // move by itself (semantics 13.9). Neither operation waits for the other's lock while it begins, so they cannot deadlock.
            ClosingStep::HandOver(Moving { to, .. }) => {
                Ok(match self.beginnings.is_recorded(to).await {
                    true => StepEnd::Done,
                    false => {
                        StepEnd::Skipped(format!("{to}, which takes it over, could not begin"))
                    }
                })
            }
            ClosingStep::Delete { deletion, .. } => {
                prune::perform(cluster, deletion, plan, kept, self.events).await
            }
            ClosingStep::Release(target) => prune::release(cluster, target, plan).await,
            ClosingStep::GiveBack(object) => Giving::of(plan)
                .give(cluster, object)
                .await
                .map(|()| StepEnd::Retained),
            ClosingStep::Annotate(change) => annotation::write(cluster, change).await.map(done),
            ClosingStep::SetAside(hidden) => aside::hide(cluster, name, hidden).await.map(done),
            ClosingStep::Restore(record) => aside::restore(cluster, name, record).await.map(done),
            ClosingStep::Discard(record) => {
                aside::delete_all(cluster, name, record).await.map(done)
            }
        };
        vec![match ended {
            Ok(end) => EndedStep { key, end },
            Err(error) => {
                let deletes = matches!(step, ClosingStep::Delete { .. });
                let remedy = error.remedy().filter(|_| deletes);
                EndedStep::failed(Failure::of(key, &error), remedy, self.events)
            }
        }]
    }
}
