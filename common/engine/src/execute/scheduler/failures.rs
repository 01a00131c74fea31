//! Handles objects that fail, that do not become ready, and that are skipped because they wait for those.

use addons_plan::changes::RefusalRemedy;
use addons_plan::graph::{GraphNode, NodeId};
use addons_plan::readiness::{Readiness, ReadinessStatus};
use addons_plan::schedule::SkippedNode;

use super::super::super::event::Event;
use super::super::super::report::{Failure, StepEnd};
use super::Scheduler;

impl Scheduler<'_> {
    pub(super) fn fail(&mut self, node: NodeId, failure: Failure, remedy: Option<RefusalRemedy>) {
        let why = format!("{} failed", failure.key);
        if let Some(GraphNode::Object { part, .. }) = self.graph.nodes.get(node) {
            (self.events)(*part, Event::failed(&failure, remedy));
        }
        if let Some(part) = self.part_mut(node) {
            part.applied.report.ended.push(failure.into());
        }
        let skipped = self.schedule.mark_failed(node);
        self.skip(skipped, &why);
    }

    pub(super) fn not_ready(&mut self, node: NodeId, readiness: Readiness) {
        let Some(key) = self.key(node).cloned() else {
            return;
        };
        let why = format!("{key} is not ready");
        if let Some(part) = self.part_mut(node) {
            part.applied.report.note(key, StepEnd::NotReady(readiness));
        }
        let skipped = self.schedule.mark_failed(node);
        self.skip(skipped, &why);
    }

    /// Reports the nodes that will not begin, unless nothing would have been sent for them.
    fn skip(&mut self, skipped: Vec<SkippedNode>, why: &str) {
        for SkippedNode { node, reason, .. } in skipped {
            self.report_skipped(node, format!("{why}, and it waits for that ({reason})"));
        }
    }

    fn report_skipped(&mut self, node: NodeId, why: String) {
        let is_step = self.steps.get(node).is_some_and(Option::is_some);
        let key = self.key(node).cloned();
        if let (Some(key), Some(part), true) = (key, self.part_mut(node), is_step)
            && !part.is_idle
        {
            part.applied.report.note(key, StepEnd::Skipped(why));
        }
    }

    /// Cancels the requests in flight of a part, and skips its other objects and what waits for them in other parts.
    pub(super) fn give_up(&mut self, part: usize, why: &str) {
        let Some(name) = self
            .parts
            .get(part)
            .map(|part| &part.task.plan.installation.name)
        else {
            return;
        };
        let given_up = self.schedule.give_up(part);
        for node in &given_up.unready {
            self.watches.give_up(*node);
            let readiness = Readiness {
                status: ReadinessStatus::InProgress,
                message: format!("it was not looked at yet: {why}"),
            };
            if let (Some(key), Some(part)) = (self.key(*node).cloned(), self.part_mut(*node)) {
                part.applied.report.note(key, StepEnd::NotReady(readiness));
            }
        }
        for node in given_up.unapplied {
            if let Some(abort) = self.aborts.remove(&node) {
                abort.abort();
            }
            self.report_skipped(node, why.to_owned());
        }
        self.skip(given_up.skipped, &format!("{name} was given up ({why})"));
    }
}
