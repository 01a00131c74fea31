//! The operation of one installation, from taking its lock to its last status. Meanwhile the scheduler applies its objects.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Mutex, oneshot};
use tokio::time::Instant;

use addons_plan::readiness::{Readiness, ReadinessStatus};
use addons_plan::{Target, Verb};
use common::api::catalogue::ResourceType;
use common::api::installation::{AddonInstallation, CreatedNamespace, InstallationPhase};
use common::manifest::key::ObjectKey;

use super::super::begin::{BeginResult, begin};
use super::super::cluster::Cluster;
use super::super::error::{EngineError, StaleReason};
use super::super::event::Event;
use super::super::journal::OperationStage;
use super::super::lock::Lock;
use super::super::namespace;
use super::super::record;
use super::super::report::{EndedStep, Failure, Report, StepEnd};
use super::super::required;
use super::super::revisions;
use super::super::status;
use super::super::task::{ExecuteOptions, PlanBack, Task};
use super::super::wait::{self, WaitTarget};
use super::beginnings::Beginnings;
use super::ending::{ending, unreachable};
use super::part::{AppliedStep, PartNews};
use super::restore;

/// How long an adoption waits to see whether its objects are ready.
const LOOK: Duration = Duration::from_secs(2);

/// The running operation of one installation of a command.
pub(super) struct RunningOperation<'a> {
    /// Its index among the tasks of the command.
    pub(super) part: usize,
    pub(super) cluster: &'a Cluster,
    pub(super) task: Task<'a>,
    pub(super) options: &'a ExecuteOptions,
    pub(super) deadline: Instant,
    pub(super) events: &'a (dyn Fn(Event) + Send + Sync),
    /// Sends messages to the scheduler.
    pub(super) news: UnboundedSender<PartNews>,
    /// Held while the operation takes its lock: one operation at a time.
    pub(super) turn: &'a Mutex<()>,
    /// Shared by all operations of the command.
    pub(super) beginnings: &'a Beginnings,
}

/// The result of the work under the lock.
pub(super) struct Worked {
    pub(super) report: Report,
    /// The uid of the target namespace, if this operation created it.
    pub(super) namespace_uid: Option<String>,
    /// Whether a closing stage has begun after which the operation cannot be rolled back.
    is_pruned: bool,
}

/// What happens to the lock when the operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Afterwards {
    /// The lock is released.
    Free,
    /// The lock stays held for the automatic rollback.
    Held,
}

impl Worked {
    /// Whether the operation failed before a closing stage that cannot be rolled back.
    fn may_go_back(&self) -> bool {
        !self.report.is_done() && !self.is_pruned
    }
}

impl RunningOperation<'_> {
    /// Runs the operation. The scheduler sends `applied` once every object has ended.
    pub(super) async fn run(
        self,
        applied: oneshot::Receiver<AppliedStep>,
        back: Option<PlanBack<'_>>,
    ) -> Result<Report, EngineError> {
        let mask = &self.task.plan.mask;
        let outcome = self.locked(applied, back).await;
        let outcome = outcome.map_err(|error| error.masked(mask));
        if outcome.as_ref().is_ok_and(Report::is_done) {
            self.task.journal.set_stage(OperationStage::Done);
        }
        // Has no effect on objects that have ended; the others cannot end any more.
        let why = outcome.as_ref().err();
        self.send(PartNews::GiveUp {
            part: self.part,
            why: why.map_or_else(|| "it is gone".to_owned(), ToString::to_string),
        });
        outcome
    }

    async fn locked(
        &self,
        applied: oneshot::Receiver<AppliedStep>,
        back: Option<PlanBack<'_>>,
    ) -> Result<Report, EngineError> {
        let plan = self.task.plan;
        let missing = self.await_types().await;
        match missing {
            Ok(missing) if missing.is_empty() => {}
            Ok(missing) => {
                self.beginnings.give_up(plan);
                let report = self.without_types(&missing);
                let why = "it was not begun".to_owned();
                self.send(PartNews::GiveUp {
                    part: self.part,
                    why,
                });
                return Ok(report);
            }
            Err(error) => {
                self.beginnings.give_up(plan);
                return Err(error);
            }
        }
        let begun = {
            let _turn = self.turn.lock().await;
            begin(
                self.cluster,
                &self.task,
                self.options,
                self.deadline,
                self.events,
            )
            .await
        };
        self.beginnings.note(plan, &begun);
        let mut report = match begun {
            Ok(BeginResult::Locked(lock)) => self.under(*lock, applied, back).await?,
            Ok(BeginResult::Nothing(stored)) => self.nothing(*stored, applied).await,
            // Another client has uninstalled it already.
            Err(EngineError::Stale {
                what: StaleReason::Uninstalled,
                ..
            }) if plan.verb.ends_installation() => Report::default(),
            Err(error) => return Err(error),
        };
        report.note_unwritten(plan);
        Ok(report)
    }

    /// Waits for types that other installations of the command may bring. Returns those that are missing at the deadline. Holds no lock and
    /// writes nothing meanwhile.
    async fn await_types(&self) -> Result<Vec<ResourceType>, EngineError> {
        let types = &self.task.plan.types;
        if types.is_empty() {
            return Ok(Vec::new());
        }
        let tell = |missing: &[ResourceType]| {
            let (key, readiness) = self.lacking(missing);
            (self.events)(Event::Waiting { key, readiness });
        };
        let left = self.deadline.saturating_duration_since(Instant::now());
        required::wait(self.cluster, types, left, &tell).await
    }

    /// Returns the report of an operation that did not begin because these types were not served in time.
    fn without_types(&self, missing: &[ResourceType]) -> Report {
        let AppliedStep { mut report, .. } = AppliedStep::nothing(self.task.plan);
        report.take_pending(vec![self.lacking(missing)]);
        report.record = Some(self.task.wanted.clone());
        report
    }

    /// Returns the key of the record and its readiness while types are missing.
    fn lacking(&self, missing: &[ResourceType]) -> (ObjectKey, Readiness) {
        let types: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let readiness = Readiness {
            status: ReadinessStatus::InProgress,
            message: format!(
                "it requires {}, which the cluster does not serve",
                types.join(", ")
            ),
        };
        (record::key(&self.task.plan.installation), readiness)
    }

    /// Reports an operation without changes. If the installation is not recorded as ready, this waits for readiness, but writes nothing.
    async fn nothing(
        &self,
        stored: AddonInstallation,
        applied: oneshot::Receiver<AppliedStep>,
    ) -> Report {
        let plan = self.task.plan;
        let mut report = Report {
            is_unwritten: true,
            ..Report::default()
        };
        for step in &plan.steps {
            report.note(step.target.key.clone(), StepEnd::Unchanged);
        }
        self.send(PartNews::Nothing { part: self.part });
        // Nothing was sent, but others may have waited for an object of this installation that did not become ready.
        if let Ok(applied) = applied.await {
            let mut ended = applied.report.ended;
            ended.retain(|step| matches!(step.end, StepEnd::Failed(_) | StepEnd::NotReady(_)));
            report.ended.extend(ended);
        }
        let is_ready = stored.status.as_ref().and_then(|status| status.phase)
            == Some(InstallationPhase::Ready);
        if report.is_done() && self.options.wait && !is_ready {
            self.wait(&mut report, &BTreeSet::new()).await;
        }
        report.record = Some(stored);
        report.masked(&plan.mask)
    }

    /// Runs the operation under its lock, which is renewed meanwhile. Stops when the lock is lost.
    async fn under(
        &self,
        mut lock: Lock,
        applied: oneshot::Receiver<AppliedStep>,
        back: Option<PlanBack<'_>>,
    ) -> Result<Report, EngineError> {
        self.task.journal.set_stage(OperationStage::Begun);
        let worked = self.work_under(&mut lock, applied).await?;
        if let Some(plan_back) = back.filter(|_| worked.may_go_back()) {
            return self.go_back(plan_back, lock, worked).await;
        }
        let Worked {
            mut report,
            namespace_uid,
            ..
        } = worked;
        let verb = self.task.plan.verb;
        if verb.ends_installation() && report.is_done() {
            if verb == Verb::Uninstall {
                self.remove_namespace(&mut lock, &mut report).await?;
            }
            lock.delete(self.cluster).await?;
            return Ok(report);
        }
        restore::spec(self.cluster, &self.task, &mut lock, &mut report).await;
        self.finish(&mut lock, namespace_uid, &report, Afterwards::Free)
            .await?;
        revisions::store_revision(self.cluster, &self.task, &lock.record, self.events).await;
        report.record = Some(lock.record);
        Ok(report)
    }

    /// Performs the work while renewing the lock.
    pub(super) async fn work_under(
        &self,
        lock: &mut Lock,
        applied: oneshot::Receiver<AppliedStep>,
    ) -> Result<Worked, EngineError> {
        let working = self.work(applied);
        lock.run_renewing(self.cluster, self.task.journal, working)
            .await
    }

    /// Creates the namespace, has the objects applied, waits, and performs the closing steps, until something fails.
    async fn work(&self, applied: oneshot::Receiver<AppliedStep>) -> Worked {
        let mut namespace_uid = None;
        let mut refused = None;
        let mut is_guarded = true;
        match self.create_namespace().await {
            Ok(uid) => {
                namespace_uid = uid;
                is_guarded = self.guard_namespaces().await;
                self.send(PartNews::Open { part: self.part });
            }
            Err(failure) => {
                self.send(PartNews::GiveUp {
                    part: self.part,
                    why: format!("{} failed", failure.key),
                });
                refused = Some(failure);
            }
        }
        // The scheduler outlives every operation that has sent it `Open` or `GiveUp`. If it did not, the outcome would be unknown, and
        // everything would stay recorded.
        let AppliedStep { mut report, ready } = applied
            .await
            .unwrap_or_else(|_| AppliedStep::nothing(self.task.plan));
        if let Some(failure) = refused {
            self.fail(&mut report, failure);
        }
        // Repeated because objects of the installation can be namespaces.
        if !is_guarded {
            self.guard_namespaces().await;
        }
        // An adoption does not affect readiness: it succeeds whether or not its objects are ready, and its record says so.
        let is_adoption = self.task.plan.verb == Verb::Adopt;
        if report.is_done() && self.options.wait && !is_adoption {
            self.wait(&mut report, &ready).await;
        }
        let is_pruned = self.close(&mut report).await;
        if report.is_done() && self.options.wait && is_adoption {
            let deadline = self.deadline.min(Instant::now() + LOOK);
            let targets = self.waited(&self.task.plan.wait_for);
            let pending = wait::wait(self.cluster, &targets, deadline, &|_| {}).await;
            report.is_unready = !pending.is_empty();
        }
        if self.task.plan.verb.ends_installation() {
            for key in &self.task.plan.unreachable {
                self.fail(&mut report, unreachable(key));
            }
        }
        Worked {
            report: report.masked(&self.task.plan.mask),
            namespace_uid,
            is_pruned,
        }
    }

    /// Labels the namespaces of a core installation. Returns whether all of them exist.
    async fn guard_namespaces(&self) -> bool {
        let task = &self.task;
        if !task.wanted.spec.core_addon || task.plan.verb.ends_installation() {
            return true;
        }
        let inventory = task.journal.inventory().to_groups();
        namespace::label_core_namespaces(self.cluster, task.wanted, &inventory, self.events).await
    }

    /// Waits for the objects that the scheduler has not seen ready.
    async fn wait(&self, report: &mut Report, ready: &BTreeSet<ObjectKey>) {
        let targets = self.task.plan.wait_for.iter();
        let targets: Vec<Target> = targets
            .filter(|target| !ready.contains(&target.key))
            .cloned()
            .collect();
        let waited = self.waited(&targets);
        let pending = wait::wait(self.cluster, &waited, self.deadline, self.events).await;
        self.task
            .journal
            .record_wait(self.task.plan, &targets, &pending);
        report_failures(&pending, self.events);
        report.take_pending(pending);
    }

    /// Returns the targets with their health checks.
    fn waited(&self, targets: &[Target]) -> Vec<WaitTarget> {
        let checks = self.task.plan.health_checks();
        let targets = targets.iter().cloned();
        targets
            .map(|target| WaitTarget::new(target, &checks))
            .collect()
    }

    pub(super) fn fail(&self, report: &mut Report, failure: Failure) {
        let failed = EndedStep::failed(failure, None, self.events);
        report.ended.push(failed);
    }

    /// Sends a message to the scheduler, unless the scheduler has ended.
    pub(super) fn send(&self, news: PartNews) {
        let _ = self.news.send(news);
    }

    /// Writes the last status of the operation.
    pub(super) async fn finish(
        &self,
        lock: &mut Lock,
        namespace_uid: Option<String>,
        report: &Report,
        afterwards: Afterwards,
    ) -> Result<(), EngineError> {
        let plan = self.task.plan;
        let ending = ending(report, self.options);
        // Not the record's generation: a spec that changed during the operation is not installed.
        let generation = lock.generation;
        let recorded = self.task.journal.inventory();
        let now = self.cluster.latest_now();
        lock.write_and_renew(self.cluster, |status| {
            if let Some(name) = &plan.create_namespace {
                status.created_namespace = namespace_uid.as_ref().map(|uid| CreatedNamespace {
                    name: name.clone(),
                    uid: uid.clone(),
                });
            }
            if let Some(records) = report.helm_records() {
                status.helm_records.clone_from(records);
            }
            let by = &self.options.holder;
            let operation = status.operation.clone();
            status::end_status(status, plan, &recorded, &ending, generation, by, now);
            if afterwards == Afterwards::Held {
                status.operation = operation;
            }
        })
        .await
    }
}

/// Reports the failures among the objects that a wait returned.
pub(super) fn report_failures(
    pending: &[(ObjectKey, Readiness)],
    events: &(dyn Fn(Event) + Send + Sync),
) {
    for (key, readiness) in pending {
        if readiness.status.is_hopeless() {
            events(Event::Failed {
                key: key.clone(),
                message: readiness.message.clone(),
                remedy: None,
            });
        }
    }
}

#[cfg(test)]
#[path = "operation/tests.rs"]
mod tests;
