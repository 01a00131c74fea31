//! Shows several installations on a terminal: a line each, with its progress and what it waits for.

use std::collections::{BTreeMap, BTreeSet};

use addons_plan::InstallationPlan;
use addons_plan::closing::HELM_GROUP;
use addons_plan::readiness::ReadinessStatus;
use common::manifest::key::ObjectKey;

use super::layout::format_block;
use crate::output;

/// The progress of all installations of a command.
pub(super) struct InstallationLines(Vec<InstallationLine>);

struct InstallationLine {
    /// The name, padded to the longest one.
    name: String,
    /// The objects that the plan applies and deletes.
    planned: BTreeSet<ObjectKey>,
    /// Whether helm installs or removes a release, which counts as one more.
    has_release: bool,
    done: BTreeSet<ObjectKey>,
    waiting: BTreeMap<ObjectKey, String>,
    failed: BTreeSet<ObjectKey>,
    /// Whether anything has happened.
    is_begun: bool,
}

impl InstallationLines {
    pub(super) fn new(plans: &[&InstallationPlan]) -> Self {
        let names = plans.iter().map(|plan| plan.installation.name.len());
        let width = names.max().unwrap_or_default();
        let lines = plans.iter().map(|plan| InstallationLine::new(plan, width));
        Self(lines.collect())
    }

    /// Counts an object that was applied or deleted.
    pub(super) fn count(&mut self, part: usize, key: &ObjectKey) {
        if let Some(installation) = self.0.get_mut(part) {
            installation.is_begun = true;
            installation.done.insert(key.clone());
            installation.waiting.remove(key);
        }
    }

    pub(super) fn note_wait(
        &mut self,
        part: usize,
        key: &ObjectKey,
        status: ReadinessStatus,
        message: &str,
    ) {
        let Some(installation) = self.0.get_mut(part) else {
            return;
        };
        installation.is_begun = true;
        if status == ReadinessStatus::Current {
            installation.waiting.remove(key);
        } else {
            let message = message.to_owned();
            installation.waiting.insert(key.clone(), message);
        }
    }

    pub(super) fn count_failure(&mut self, part: usize, key: &ObjectKey) {
        if let Some(installation) = self.0.get_mut(part) {
            installation.is_begun = true;
            installation.failed.insert(key.clone());
            installation.waiting.remove(key);
        }
    }

    /// Restarts the count for the rollback.
    pub(super) fn begin_rollback(&mut self, part: usize) {
        if let Some(installation) = self.0.get_mut(part) {
            installation.done.clear();
            installation.waiting.clear();
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.0.iter().any(|line| !line.waiting.is_empty())
    }

    /// The lines of each installation that has begun: those that are not complete first, because the others may not fit the terminal.
    pub(super) fn live_blocks(&self, width: usize) -> Vec<Vec<String>> {
        let begun = self.0.iter().filter(|line| line.is_begun);
        let (complete, open): (Vec<_>, Vec<_>) = begun.partition(|line| line.is_complete());
        let all = open.into_iter().chain(complete);
        all.map(|line| line.block(width)).collect()
    }

    /// The last line of each installation that has begun, without what it waited for.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let begun = self.0.iter().filter(|line| line.is_begun);
        begun
            .map(|line| format!("{} {}", line.mark(), line.title()))
            .collect()
    }
}

impl InstallationLine {
    fn new(plan: &InstallationPlan, width: usize) -> Self {
        let applied = plan.steps.iter().map(|step| &step.target.key);
        let deleted = plan.deletions().map(|deletion| &deletion.target.key);
        Self {
            name: output::pad_text(&plan.installation.name, width),
            planned: applied.chain(deleted).cloned().collect(),
            has_release: plan.helm_release().is_some(),
            done: BTreeSet::new(),
            waiting: BTreeMap::new(),
            failed: BTreeSet::new(),
            is_begun: false,
        }
    }

    fn steps(&self) -> usize {
        self.planned.len() + usize::from(self.has_release)
    }

    /// The number of planned objects that are done. The target namespace and objects that are changed again are not counted.
    fn count(&self) -> usize {
        let (planned, others): (Vec<_>, Vec<_>) =
            self.done.iter().partition(|key| self.planned.contains(key));
        let is_released = self.has_release && others.iter().any(|key| key.group == HELM_GROUP);
        planned.len() + usize::from(is_released)
    }

    fn is_complete(&self) -> bool {
        self.count() >= self.steps() && self.waiting.is_empty() && self.failed.is_empty()
    }

    fn mark(&self) -> &'static str {
        if !self.failed.is_empty() {
            "✗"
        } else if self.is_complete() {
            "✓"
        } else {
            "…"
        }
    }

    fn title(&self) -> String {
        format!("{}  {}/{}", self.name, self.count(), self.steps())
    }

    /// Formats `… web  7/9  Deployment web: 1/2 ready, and 2 more`, on several lines if the terminal is too narrow.
    fn block(&self, width: usize) -> Vec<String> {
        let reason = match self.waiting.first_key_value() {
            None => String::new(),
            Some((key, message)) => match self.waiting.len() - 1 {
                0 => format!("{key}: {message}"),
                more => format!("{key}: {message}, and {more} more"),
            },
        };
        format_block(self.mark(), &self.title(), &reason, width)
    }
}
