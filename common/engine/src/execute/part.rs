//! The state of one installation while the scheduler applies its objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::Instant;

use addons_plan::InstallationPlan;
use addons_plan::graph::{Graph, GraphNode};
use addons_plan::readiness::health_check::HealthChecks;
use common::api::names;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;

use super::super::apply::{Applier, PartEvent};
use super::super::report::{Report, StepEnd};
use super::super::task::Task;

/// A message from an operation to the scheduler.
pub(super) enum PartNews {
    /// The objects of the operation may begin.
    Open {
        /// The index of the operation.
        part: usize,
    },
    /// Nothing has to change: the scheduler sends nothing for its objects.
    Nothing {
        /// The index of the operation.
        part: usize,
    },
    /// The operation failed. Everything that waits for its objects fails with it.
    GiveUp {
        /// The index of the operation.
        part: usize,
        /// The reason.
        why: String,
    },
}

/// The outcome of the objects of one installation.
#[derive(Debug, Default)]
pub(super) struct AppliedStep {
    pub(super) report: Report,
    /// Objects that were seen ready and need no further watch.
    pub(super) ready: BTreeSet<ObjectKey>,
}

impl AppliedStep {
    /// Returns the outcome if no step of a plan was tried.
    pub(super) fn nothing(plan: &InstallationPlan) -> Self {
        Self {
            report: skipped(plan, "it was not tried", |_| true),
            ready: BTreeSet::new(),
        }
    }
}

/// One installation while its objects are applied.
pub(super) struct ScheduledPart<'a> {
    pub(super) task: Task<'a>,
    pub(super) applier: Applier<'a>,
    /// The health checks of its entry.
    pub(super) checks: HealthChecks,
    /// Whether its objects are unchanged, so that nothing is sent.
    pub(super) is_idle: bool,
    pub(super) applied: AppliedStep,
    /// Sends the outcome to the operation once every object has ended; `None` after that.
    pub(super) handle: Option<oneshot::Sender<AppliedStep>>,
    pub(super) is_known: bool,
}

impl<'a> ScheduledPart<'a> {
    pub(super) fn new(
        index: usize,
        task: Task<'a>,
        graph: &Graph,
        deadline: Instant,
        told: UnboundedSender<PartEvent>,
    ) -> Self {
        let InstallationName { namespace, name } = &task.plan.installation;
        Self {
            task,
            applier: Applier {
                part: index,
                manager: names::field_manager(namespace, name),
                owner: names::owner_hash(namespace, name),
                deadline,
                mask: Arc::clone(&task.plan.mask),
                first_job: Arc::default(),
                recorded: &task.plan.union,
                events: told,
            },
            checks: task.plan.health_checks(),
            is_idle: false,
            applied: AppliedStep {
                report: without_order(index, task, graph),
                ready: BTreeSet::new(),
            },
            handle: None,
            is_known: false,
        }
    }
}

/// Reports the steps that are missing from the graph as skipped: they would never be sent, and the operation must not report success.
fn without_order(part: usize, task: Task<'_>, graph: &Graph) -> Report {
    let known: BTreeSet<&ObjectKey> = graph
        .nodes
        .iter()
        .filter_map(|node| match node {
            GraphNode::Object { part: of, key } if *of == part => Some(key),
            GraphNode::Object { .. } | GraphNode::Gate { .. } => None,
        })
        .collect();
    let why = "the order of the command does not name it";
    skipped(task.plan, why, |key| !known.contains(key))
}

fn skipped(plan: &InstallationPlan, why: &str, is: impl Fn(&ObjectKey) -> bool) -> Report {
    let mut report = Report::default();
    let keys = plan.steps.iter().map(|step| &step.target.key);
    for key in keys.filter(|key| is(key)) {
        report.note(key.clone(), StepEnd::Skipped(why.to_owned()));
    }
    report
}
