//! Applies the objects of a command, each when the graph lets it begin.
//!
//! One loop polls all requests in flight, all watches, and the messages of the operations. An object is watched only if other objects that
//! are sent later wait until it is served or ready.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::future::{AbortHandle, Aborted, BoxFuture, abortable};
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use addons_plan::graph::{Graph, GraphNode, NodeId, Until};
use addons_plan::readiness::{Readiness, ReadinessStatus};
use addons_plan::schedule::Schedule;
use addons_plan::{Action, Step};
use common::manifest::key::ObjectKey;

use super::super::apply::{PartEvent, StepOutcome};
use super::super::cluster::Cluster;
use super::super::event::Event;
use super::super::report::{Failure, StepEnd};
use super::super::served::Definition;
use super::super::task::Task;
use super::super::wait::WaitTarget;
use super::part::{AppliedStep, PartNews, ScheduledPart};
use super::watches::{Pending, WatchResult, Watches};

mod failures;

pub(super) struct Scheduler<'a> {
    cluster: &'a Cluster,
    graph: &'a Graph,
    events: &'a (dyn Fn(usize, Event) + Send + Sync),
    deadline: Instant,
    /// Whether to wait for readiness.
    wait: bool,
    schedule: Schedule<'a>,
    /// The step of each node; `None` for nodes that send nothing.
    steps: Vec<Option<&'a Step>>,
    parts: Vec<ScheduledPart<'a>>,
    /// Handles to cancel requests in flight when their operation loses its lock.
    aborts: BTreeMap<NodeId, AbortHandle>,
    watches: Watches<'a>,
    /// Events of steps that are still being tried.
    told: UnboundedReceiver<PartEvent>,
}

type EndedNode<'a> = (NodeId, Result<StepOutcome<'a>, Aborted>);

impl<'a> Scheduler<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        tasks: &[Task<'a>],
        graph: &'a Graph,
        wait: bool,
        deadline: Instant,
        events: &'a (dyn Fn(usize, Event) + Send + Sync),
    ) -> Self {
        let steps: Vec<Option<&Step>> = graph
            .nodes
            .iter()
            .map(|node| match node {
                GraphNode::Object { part, key } => tasks.get(*part)?.plan.step(key),
                GraphNode::Gate { .. } => None,
            })
            .collect();
        let is_step = |node: NodeId| steps.get(node).is_some_and(Option::is_some);
        let schedule = Schedule::new(graph, tasks.len(), wait, is_step);
        let (tell, told) = unbounded_channel();
        let parts = tasks.iter().enumerate();
        let parts = parts.map(|(index, task)| {
            let tell = tell.clone();
            ScheduledPart::new(index, *task, graph, deadline, tell)
        });
        Self {
            cluster,
            graph,
            events,
            deadline,
            wait,
            schedule,
            parts: parts.collect(),
            steps,
            aborts: BTreeMap::new(),
            watches: Watches::new(cluster, deadline),
            told,
        }
    }

    /// Runs until the outcome of every operation was returned to it, or the operation has given up.
    pub(super) async fn run(
        mut self,
        mut inbox: UnboundedReceiver<PartNews>,
        handles: Vec<oneshot::Sender<AppliedStep>>,
    ) {
        for (part, handle) in self.parts.iter_mut().zip(handles) {
            part.handle = Some(handle);
        }
        let mut in_flight = FuturesUnordered::<BoxFuture<'a, EndedNode<'a>>>::new();
        loop {
            while in_flight.len() < self.cluster.concurrency()
                && let Some(node) = self.schedule.begin()
            {
                in_flight.extend(self.begin(node));
            }
            let begin_at = self.watches.begin_at();
            if in_flight.is_empty() || begin_at.is_some_and(|begin_at| begin_at <= Instant::now()) {
                self.watches.begin();
            }
            self.hand_over();
            if self.parts.iter().all(|part| part.handle.is_none()) {
                return;
            }
            tokio::select! {
                Some((node, ended)) = in_flight.next(), if !in_flight.is_empty() => {
                    self.aborts.remove(&node);
                    // An aborted request belongs to a part that was given up.
                    if let Ok(outcome) = ended {
                        self.take(node, outcome);
                    }
                }
                Some((key, readiness)) = self.watches.seeing.recv() => self.see(&key, &readiness),
                Some(pending) = self.watches.open.next(), if !self.watches.open.is_empty() => self.miss(pending),
                Some(news) = inbox.recv() => self.handle(news),
                Some((part, event)) = self.told.recv() => (self.events)(part, event),
                () = sleep_until(begin_at.unwrap_or(self.deadline)), if begin_at.is_some() => {}
                () = sleep_until(self.deadline), if self.is_busy() => self.time_is_over(),
            }
        }
    }

    /// Begins an object. Returns its request, or `None` if nothing has to be sent.
    fn begin(&mut self, node: NodeId) -> Option<BoxFuture<'a, EndedNode<'a>>> {
        let part = self.part_of(node)?;
        let step = self.steps.get(node).copied().flatten();
        let Some(step) = step.filter(|_| !part.is_idle) else {
            self.applied(node);
            return None;
        };
        let (applier, cluster) = (part.applier.clone(), self.cluster);
        let (applying, abort) = abortable(async move { applier.apply_step(cluster, step).await });
        self.aborts.insert(node, abort);
        Some(Box::pin(async move { (node, applying.await) }))
    }

    /// Records the outcome of one step.
    fn take(&mut self, node: NodeId, outcome: StepOutcome<'a>) {
        let Some(GraphNode::Object { part: index, .. }) = self.graph.nodes.get(node) else {
            return;
        };
        let events = |event| (self.events)(*index, event);
        let Some(part) = self.parts.get_mut(*index) else {
            return;
        };
        let key = &outcome.step.target.key;
        let answer = match outcome.result {
            Ok(answer) => answer,
            Err(error) => {
                let failure = Failure::of(key.clone(), &error);
                return self.fail(node, failure, error.remedy());
            }
        };
        part.task
            .journal
            .record_applied(part.task.plan, key, &answer, &outcome.settled);
        if !self.wait {
            // Applied counts as ready.
            let journal = part.task.journal;
            journal.record_job_status(part.task.plan, key, ReadinessStatus::Current);
        }
        let report = &mut part.applied.report;
        for settled in outcome.settled {
            events(Event::Settled(settled.clone()));
            report.settled.push(settled);
        }
        let end = match outcome.step.action {
            _ if outcome.recreated => StepEnd::Recreated,
            _ if outcome.is_unchanged => StepEnd::Unchanged,
            Action::Create => StepEnd::Created,
            Action::Adopt => StepEnd::Adopted,
            // Only fields of other managers have changed.
            Action::Refresh if !outcome.step.digest.is_empty() => StepEnd::Unchanged,
            Action::Update | Action::Restore | Action::Refresh => StepEnd::Changed,
        };
        report.note(key.clone(), end);
        events(Event::Applied {
            key: key.clone(),
            action: outcome.step.action,
        });
        for message in outcome.warnings {
            events(Event::Warning {
                key: key.clone(),
                message,
            });
        }
        if outcome.terminating {
            let message = "it is being deleted; wait until it is gone and run again".to_owned();
            let readiness = Readiness {
                status: ReadinessStatus::Terminating,
                message,
            };
            return self.not_ready(node, readiness);
        }
        self.applied(node);
    }

    /// Unblocks the nodes that waited for this one to be applied, and starts to watch it if others wait until it is served or ready.
    fn applied(&mut self, node: NodeId) {
        let Some(until) = self.schedule.mark_applied(node) else {
            return;
        };
        let step = self.steps.get(node).copied().flatten();
        let definition = step.and_then(|step| Definition::from_object(&step.object));
        let watched = match (until, definition) {
            (Until::Applied, _) => None,
            // It may be served already, in its earlier versions.
            (_, Some(definition)) => Some(WatchResult::Definition(definition)),
            // The kinds of unchanged CRDs were served when the plan was made.
            (Until::Served, None) => None,
            // Without waiting, applied counts as ready.
            (Until::Ready, None) => self.target(node).map(WatchResult::Object),
        };
        match watched {
            Some(watched) => self.watches.add(node, watched),
            None => self.schedule.mark_ready(node),
        }
    }

    /// Returns the watch target of a node; `None` if the node is ready as soon as it exists.
    fn target(&self, node: NodeId) -> Option<WaitTarget> {
        let part = self.part_of(node)?;
        let key = self.key(node)?;
        let waits = &part.task.plan.wait_for;
        let found = waits.binary_search_by(|target| target.key.cmp(key));
        let target = waits.get(found.ok()?)?;
        Some(WaitTarget::new(target.clone(), &part.checks))
    }

    /// Handles a change of a watched object.
    fn see(&mut self, key: &ObjectKey, readiness: &Readiness) {
        let Some(node) = self.watches.node(key) else {
            return;
        };
        if let Some(GraphNode::Object { part, .. }) = self.graph.nodes.get(node) {
            (self.events)(
                *part,
                Event::Waiting {
                    key: key.clone(),
                    readiness: readiness.clone(),
                },
            );
        }
        if readiness.status == ReadinessStatus::Current {
            self.watches.end(key);
            if let Some(part) = self.part_mut(node) {
                part.applied.ready.insert(key.clone());
                let journal = part.task.journal;
                journal.record_job_status(part.task.plan, key, readiness.status);
            }
            self.schedule.mark_ready(node);
        }
    }

    /// Handles the objects that were not ready when their watch ended.
    fn miss(&mut self, pending: Pending) {
        // First handle what the watch reported before it ended.
        while let Ok((key, readiness)) = self.watches.seeing.try_recv() {
            self.see(&key, &readiness);
        }
        for (key, readiness) in pending {
            if let Some(node) = self.watches.end(&key) {
                if let Some(part) = self.part_of(node) {
                    let journal = part.task.journal;
                    journal.record_job_status(part.task.plan, &key, readiness.status);
                }
                if readiness.status.is_hopeless() {
                    self.fail(node, Failure::of_readiness(key, readiness), None);
                } else {
                    self.not_ready(node, readiness);
                }
            }
        }
    }

    fn handle(&mut self, news: PartNews) {
        let (PartNews::Open { part } | PartNews::Nothing { part } | PartNews::GiveUp { part, .. }) =
            &news;
        if let Some(part) = self.parts.get_mut(*part) {
            part.is_known = true;
            part.is_idle |= matches!(news, PartNews::Nothing { .. });
        }
        match news {
            PartNews::Open { part } | PartNews::Nothing { part } => self.schedule.open(part),
            PartNews::GiveUp { part, why } => self.give_up(part, &why),
        }
    }

    fn time_is_over(&mut self) {
        // Watched objects are reported by their watch, which ends with the reasons.
        for part in 0..self.parts.len() {
            let busy = self.parts.get(part).is_some_and(|part| part.is_known);
            if busy && !self.has_watches(part) {
                self.give_up(part, "timed out");
            }
        }
    }

    /// Whether the deadline has to be handled here: operations that wait for their locks, and watches, end by themselves.
    fn is_busy(&self) -> bool {
        let parts = self.parts.iter().enumerate();
        let mut working = parts.filter(|(_, part)| part.is_known && part.handle.is_some());
        working.any(|(index, _)| !self.has_watches(index))
    }

    fn has_watches(&self, part: usize) -> bool {
        let mut nodes = self.watches.nodes();
        nodes.any(|node| matches!(self.graph.nodes.get(node), Some(GraphNode::Object { part: of, .. }) if *of == part))
    }

    /// Sends each operation the outcome of its objects, once all of them have ended.
    fn hand_over(&mut self) {
        for (index, part) in self.parts.iter_mut().enumerate() {
            if part.is_known
                && self.schedule.is_over(index)
                && let Some(handle) = part.handle.take()
            {
                // An operation that has ended meanwhile does not need the outcome.
                let _ = handle.send(std::mem::take(&mut part.applied));
            }
        }
    }

    fn key(&self, node: NodeId) -> Option<&'a ObjectKey> {
        match self.graph.nodes.get(node)? {
            GraphNode::Object { key, .. } => Some(key),
            GraphNode::Gate { .. } => None,
        }
    }

    fn part_of(&self, node: NodeId) -> Option<&ScheduledPart<'a>> {
        match self.graph.nodes.get(node)? {
            GraphNode::Object { part, .. } => self.parts.get(*part),
            GraphNode::Gate { .. } => None,
        }
    }

    fn part_mut(&mut self, node: NodeId) -> Option<&mut ScheduledPart<'a>> {
        match self.graph.nodes.get(node)? {
            GraphNode::Object { part, .. } => self.parts.get_mut(*part),
            GraphNode::Gate { .. } => None,
        }
    }
}

#[cfg(test)]
#[path = "scheduler/tests.rs"]
mod tests;
