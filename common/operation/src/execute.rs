//! Executes a plan, and reports the result of each installation.

use std::time::Duration;

use addons_engine::{
    Cluster, EngineError, ExecuteOptions, Journal, OutsideFailure, Report, Task,
    execute as run_plans, local, namespace,
};
use common::api::names::InstallationName;
use common::plan::Verb;
use common::plan::graph::Graph;
use futures::future::{BoxFuture, join_all};

use crate::builtin;
use crate::context::Context;
use crate::definitions;
use crate::error::OperationError;
use crate::event::Event;
use crate::interruption::Interruption;
use crate::plan::{Plan, Planned};
use crate::release::ReleaseWork;

/// Bound for giving back the locks of an interrupted operation.
const LEAVING: Duration = Duration::from_secs(2);

/// How a plan is executed.
#[derive(Clone, Debug)]
pub struct Run {
    /// Whether readiness is waited for.
    pub wait: bool,
    /// Bound of the whole command.
    pub timeout: Duration,
    /// Whether to wait for another holder of a lock, or to fail at once.
    pub wait_for_lock: bool,
    /// Take a lock over from a live holder.
    pub steal_lock: bool,
    /// Whether our definitions are installed where they are missing; otherwise that is an error.
    pub define: bool,
}

/// The result for one installation.
#[derive(Debug)]
pub struct Outcome {
    /// The installation.
    pub installation: InstallationName,
    /// What was done; an error where nothing was, or where the record could not be written.
    pub result: Result<Report, OperationError>,
}

impl Default for Run {
    /// Waits, 5 minutes at most, and installs the definitions.
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

/// Work for helm, in the form that the engine takes.
type HelmWork = Box<dyn Fn() -> BoxFuture<'static, Result<(), OutsideFailure>> + Send + Sync>;

/// Executes a plan. A failure stops only what comes after it in the order. One outcome for each installation of the plan, in
/// its order.
///
/// # Errors
/// Nothing was written except perhaps our definitions: they are missing and may not be installed, or the server refuses. Or it was
/// interrupted: then its locks are free, and the next run continues.
pub async fn execute(
    ctx: &Context,
    plan: &Plan,
    run: &Run,
    interruption: &Interruption,
) -> Result<Vec<Outcome>, OperationError> {
    let cluster = ctx.cluster().await?;
    prepare(ctx, plan, run).await?;
    let options = ExecuteOptions {
        holder: ctx.settings().holder.clone(),
        wait: run.wait,
        timeout: run.timeout,
        wait_for_lock: run.wait_for_lock,
        steal_lock: run.steal_lock,
    };
    let mut helm: Vec<Option<HelmWork>> = Vec::new();
    for planned in &plan.installations {
        let work = ReleaseWork::of(ctx, planned, run, interruption).await?;
        helm.push(work.map(|work| -> HelmWork { Box::new(move || work.clone().run()) }));
    }
    let plans = plan.installations.iter().map(|planned| &planned.plan);
    let journals: Vec<Journal> = plans.map(Journal::of).collect();
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
            outside: helm.as_deref(),
        })
        .collect();
    let work = async {
        let mut verbs = plan.installations.iter().map(|planned| planned.plan.verb);
        if verbs.all(Verb::ends) {
            return tear_down(ctx, cluster, &plan.installations, &tasks, &options).await;
        }
        let events = |part, event| ctx.emit(Event::Executing { part, event });
        run_plans(cluster, &tasks, &plan.graph, &options, &events).await
    };
    let reports = match interruption.ends(work, cluster.quiet()).await {
        Ok(reports) => reports,
        Err(interrupted) => {
            leave(ctx, cluster, &tasks).await;
            return Err(interrupted.into());
        }
    };
    let names = plan.installations.iter().zip(reports);
    Ok(names
        .map(|(planned, report)| Outcome {
            installation: planned.plan.installation.clone(),
            result: report.map_err(OperationError::from),
        })
        .collect())
}

/// Records what an interrupted operation has done and gives its locks back, so that the next client need not wait until they
/// expire. A lock that cannot be given back in time expires.
async fn leave(ctx: &Context, cluster: &Cluster, tasks: &[Task<'_>]) {
    let holder = &ctx.settings().holder;
    let leaving = tasks.iter().map(async |task| {
        let name = &task.plan.installation;
        let _ = addons_engine::leave(cluster, name, holder, Some(task.journal)).await;
    });
    let _ = tokio::time::timeout(LEAVING, join_all(leaving)).await;
}

/// Creates what the first record needs: our definitions, and the namespaces of the records.
async fn prepare(ctx: &Context, plan: &Plan, run: &Run) -> Result<(), OperationError> {
    let home = ctx.home().await?;
    if plan.defines {
        definitions::ensure(ctx, run.define).await?;
    }
    for namespace in &plan.namespaces {
        if namespace.create {
            local::ensure(home, &namespace.name).await?;
        }
        if namespace.holds_core {
            namespace::hold_core(home, &namespace.name).await?;
        }
    }
    Ok(())
}

/// Uninstalls one after another, in the order of the plan: dependents are removed before what they require, which stays where
/// a dependent could not be removed completely.
async fn tear_down(
    ctx: &Context,
    cluster: &Cluster,
    installations: &[Planned],
    tasks: &[Task<'_>],
    options: &ExecuteOptions,
) -> Vec<Result<Report, EngineError>> {
    let mut reports: Vec<Result<Report, EngineError>> = Vec::new();
    for (part, (planned, task)) in installations.iter().zip(tasks).enumerate() {
        let name = &planned.plan.installation;
        let stays = installations.iter().zip(&reports).find(|(other, report)| {
            let is_gone = report.as_ref().is_ok_and(Report::is_done);
            other.plan.requires.contains(name) && !is_gone
        });
        if let Some((other, _)) = stays {
            let why = format!("{} requires it and is not gone", other.plan.installation);
            let deletions = planned.plan.prune.iter().flatten();
            reports.push(Ok(Report {
                skipped: deletions
                    .map(|deletion| (deletion.target.key.clone(), why.clone()))
                    .collect(),
                ..Report::default()
            }));
            continue;
        }
        let events = |_, event| ctx.emit(Event::Executing { part, event });
        reports.extend(run_plans(cluster, &[*task], &Graph::default(), options, &events).await);
        if builtin::guards(&planned.record) {
            builtin::webhook::lifted(ctx).await;
        }
    }
    reports
}
