//! Executes a plan, and reports the result of each installation.

pub mod atomic;
pub mod continued;
pub mod interruption;

use std::collections::BTreeSet;
use std::time::Duration;

use addons_engine::{
    Cluster, EndedStep, EngineError, ExecuteOptions, Journal, OwnedOutside, Report, StepEnd, Task,
    execute as run_plans, local, namespace, record,
};
use addons_plan::Verb;
use addons_plan::closing::HELM_GROUP;
use addons_plan::graph::Graph;
use addons_plan::readiness::ReadinessStatus;
use common::api::installation::CreatedNamespace;
use common::api::names::InstallationName;
use futures::future::{join, join_all};

use self::interruption::Interruption;
use crate::builtin;
use crate::builtin::definitions;
use crate::context::Context;
use crate::error::OperationError;
use crate::event::OperationEvent;
use crate::plan::release::ReleaseWork;
use crate::plan::{Plan, PlannedInstallation};

/// Options for executing a plan.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Whether to wait for readiness.
    pub wait: bool,
    /// The time limit of the whole command.
    pub timeout: Duration,
    /// Whether to wait for another holder of a lock, or to fail at once.
    pub wait_for_lock: bool,
    /// Whether to take over a lock from a live holder.
    pub steal_lock: bool,
    /// Whether to install our definitions if they are missing; otherwise this is an error.
    pub define: bool,
}

impl Default for RunOptions {
    /// Waits for at most 5 minutes, and installs the definitions.
    fn default() -> Self {
        Self {
            wait: true,
            timeout: Duration::from_secs(300),
            wait_for_lock: true,
            steal_lock: false,
            define: true,
        }
    }
}

/// The time limit for releasing the locks of an interrupted operation.
const LOCK_RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The result for one installation.
#[derive(Debug)]
pub struct InstallationOutcome {
    /// The installation.
    pub installation: InstallationName,
    /// The report; an error if nothing was done or the record could not be written.
    pub result: Result<Report, OperationError>,
}

/// Executes a plan. A failure stops only what comes after it in the order. Returns one outcome for each installation of the plan, in its
/// order.
///
/// # Errors
/// Nothing was written if the server refuses a write of the plan. Nothing but perhaps our definitions was written if these are missing and
/// may not be installed, or the server refuses them. If the operation was interrupted, its locks are released, and the next run continues.
pub async fn execute(
    ctx: &Context,
    plan: &Plan,
    run: &RunOptions,
    interruption: &Interruption,
) -> Result<Vec<InstallationOutcome>, OperationError> {
    plan.check_refusals()?;
    let cluster = ctx.cluster().await?;
    let (holder, prepared) = join(ctx.holder(), prepare(ctx, plan, run)).await;
    prepared?;
    let options = ExecuteOptions {
        holder,
        wait: run.wait,
        timeout: run.timeout,
        wait_for_lock: run.wait_for_lock,
        steal_lock: run.steal_lock,
        leave_namespaces: BTreeSet::new(),
        choices: plan.choices.clone(),
    };
    let mut helm: Vec<Option<OwnedOutside>> = Vec::new();
    for planned in &plan.installations {
        helm.push(ReleaseWork::prepare(ctx, planned, run, interruption).await?);
    }
    let plans = plan.installations.iter().map(|planned| &planned.plan);
    let journals: Vec<Journal> = plans.map(Journal::from_plan).collect();
    let tasks: Vec<Task<'_>> = plan
        .installations
        .iter()
        .zip(&helm)
        .zip(&journals)
        .map(|((planned, helm), journal)| Task {
            wanted: &planned.record,
            plan: &planned.plan,
            journal,
            fallback: planned.fallback.as_ref(),
            entry: planned.entry.as_ref(),
            outside: helm.as_deref(),
        })
        .collect();
    // The uninstallations of a plan come after everything that is installed.
    let mut verbs = plan.installations.iter().map(|planned| planned.plan.verb);
    let first = verbs
        .position(Verb::ends_installation)
        .unwrap_or(tasks.len());
    let (applied, ending) = tasks.split_at(first);
    let events = |part, event| {
        if is_wait(&event) {
            interruption.begin_wait();
        }
        ctx.emit(OperationEvent::Executing { part, event });
    };
    let work = async {
        let mut reports = Vec::new();
        if !applied.is_empty() {
            let parts = 0..applied.len();
            let backs =
                parts.map(|part| atomic::rollback_planner(ctx, plan, part, run, interruption));
            let backs = backs.collect();
            reports = run_plans(cluster, applied, &plan.graph, backs, &options, &events).await;
        }
        tear_down(ctx, cluster, plan, ending, &options, &events, &mut reports).await;
        reports
    };
    let quiet = async {
        match interruption.is_superseded() {
            // Other operations go on. What this one has sent is continued like the writes of a killed client.
            true => None,
            false => Some(cluster.pause_requests().await),
        }
    };
    let reports = match interruption.run_until_interrupted(work, quiet).await {
        Ok(reports) => reports,
        Err(interrupted) => {
            for task in &tasks {
                if let Some(stage) = task.journal.stage() {
                    interruption.record_stage(&task.plan.installation, stage);
                }
            }
            release_locks(&options.holder, cluster, &tasks).await;
            return Err(interrupted.into());
        }
    };
    let names = plan.installations.iter().zip(reports);
    Ok(names
        .map(|(planned, report)| InstallationOutcome {
            installation: planned.plan.installation.clone(),
            result: report.map_err(OperationError::from),
        })
        .collect())
}

/// Whether an event says that an operation waits: for another client, or for an object to become ready or to be deleted. Waiting for helm
/// does not count, because helm works.
fn is_wait(event: &addons_engine::Event) -> bool {
    match event {
        addons_engine::Event::WaitingForLock { .. } => true,
        addons_engine::Event::Waiting { key, readiness } => {
            readiness.status != ReadinessStatus::Current && key.group != HELM_GROUP
        }
        _ => false,
    }
}

/// Records the progress of an interrupted operation and releases its locks, so that the next client need not wait until they expire. A lock
/// that cannot be released in time expires.
async fn release_locks(holder: &str, cluster: &Cluster, tasks: &[Task<'_>]) {
    let leaving = tasks.iter().map(async |task| {
        let name = &task.plan.installation;
        let _ = addons_engine::give_back(cluster, name, holder, Some(task.journal)).await;
    });
    let _ = tokio::time::timeout(LOCK_RELEASE_TIMEOUT, join_all(leaving)).await;
}

/// Creates what the first record needs: our definitions, and the namespaces of the records.
async fn prepare(ctx: &Context, plan: &Plan, run: &RunOptions) -> Result<(), OperationError> {
    let home = ctx.home().await?;
    if plan.defines {
        definitions::ensure(ctx, run.define).await?;
    }
    for namespace in &plan.namespaces {
        if namespace.create {
            local::ensure(home, &namespace.name).await?;
        }
        if namespace.holds_core {
            namespace::label_holds_core(home, &namespace.name).await?;
        }
    }
    Ok(())
}

/// Uninstalls one installation after another, in the order of the plan, and adds a report for each. Dependents come before what they
/// require, which stays if a dependent could not be uninstalled completely. Nothing is uninstalled if an installation of the same plan
/// failed: it may still need the others.
async fn tear_down(
    ctx: &Context,
    cluster: &Cluster,
    plan: &Plan,
    ending: &[Task<'_>],
    options: &ExecuteOptions,
    events: &(dyn Fn(usize, addons_engine::Event) + Send + Sync),
    reports: &mut Vec<Result<Report, EngineError>>,
) {
    let first = reports.len();
    for (place, task) in ending.iter().enumerate() {
        let part = reports.len();
        let others = ending.get(place + 1..).unwrap_or_default();
        let left = namespace_to_delete_last(task, others).map(|created| created.name.clone());
        let options = &ExecuteOptions {
            leave_namespaces: left.into_iter().collect(),
            ..options.clone()
        };
        if let Some(why) = why_not_uninstalled(&plan.installations, task, reports) {
            let deletions = task.plan.deletions();
            let keys = deletions.map(|deletion| deletion.target.key.clone());
            // The record stays in any case, even without objects.
            let keys = keys.chain([record::key(&task.plan.installation)]);
            let ended = keys.map(|key| EndedStep {
                key,
                end: StepEnd::Skipped(why.clone()),
            });
            reports.push(Ok(Report {
                ended: ended.collect(),
                ..Report::default()
            }));
            continue;
        }
        let events = &|_, event| events(part, event);
        reports.extend(
            run_plans(
                cluster,
                &[*task],
                &Graph::default(),
                Vec::new(),
                options,
                events,
            )
            .await,
        );
        if builtin::is_policies_record(task.wanted) {
            builtin::webhook::wait_until_lifted(ctx).await;
        }
    }
    let deletions = ending.iter().flat_map(|task| task.plan.deletions());
    let deleted: BTreeSet<String> = deletions.map(|deletion| deletion.uid.clone()).collect();
    for (place, task) in ending.iter().enumerate() {
        let others = ending.get(place + 1..).unwrap_or_default();
        let Some(Ok(report)) = reports.get_mut(first + place) else {
            continue;
        };
        if namespace_to_delete_last(task, others).is_none() || !report.is_done() {
            continue;
        }
        let events = |event| events(first + place, event);
        let (deleted, timeout) = (deleted.clone(), options.timeout);
        let removing =
            namespace::remove_leftover(cluster, task.wanted, deleted, timeout, report, &events);
        if let Err(error) = removing.await {
            reports[first + place] = Err(error);
        }
    }
}

/// Returns the namespace that an uninstallation created, if a later uninstallation still uses it: it is deleted at the end (semantics 7.2).
fn namespace_to_delete_last<'a>(
    task: &'a Task<'_>,
    others: &[Task<'_>],
) -> Option<&'a CreatedNamespace> {
    let status = task.wanted.status.as_ref();
    let created = status.and_then(|status| status.created_namespace.as_ref());
    let created = created.filter(|_| task.plan.verb == Verb::Uninstall)?;
    let mut users = others.iter();
    let is_used = users.any(|other| namespace::is_used_by(&created.name, other.wanted));
    is_used.then_some(created)
}

/// Returns why an installation is not uninstalled, from the results of those before it.
fn why_not_uninstalled(
    installations: &[PlannedInstallation],
    task: &Task<'_>,
    reports: &[Result<Report, EngineError>],
) -> Option<String> {
    let is_done = |report: &Result<Report, EngineError>| report.as_ref().is_ok_and(Report::is_done);
    let before = installations.iter().zip(reports);
    let mut undone = before.filter(|(_, report)| !is_done(report));
    undone.find_map(|(other, _)| {
        let name = &other.plan.installation;
        if !other.plan.verb.ends_installation() {
            return Some(format!("{name} is not installed completely"));
        }
        let requires = other.plan.requires.contains(&task.plan.installation);
        requires.then(|| format!("{name} requires it and is not gone"))
    })
}
