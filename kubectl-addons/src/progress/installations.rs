//! Shows several installations on a terminal: a line each, with its progress and what it waits for.

use std::collections::BTreeMap;

use addons_plan::readiness::ReadinessStatus;
use common::manifest::key::ObjectKey;
use indicatif::ProgressBar;

use super::Screen;
use crate::output;

/// The progress of all installations of a command.
pub(super) struct InstallationLines(Vec<InstallationLine>);

struct InstallationLine {
    /// The name, padded to the longest one.
    name: String,
    steps: usize,
    done: usize,
    waiting: BTreeMap<ObjectKey, String>,
    failed: usize,
    /// The line on the terminal, from the first event on.
    bar: Option<ProgressBar>,
}

impl InstallationLines {
    pub(super) fn new(plan: &addons_operation::Plan) -> Self {
        let installations = plan.installations.iter().map(|planned| &planned.plan);
        let names = installations
            .clone()
            .map(|plan| plan.installation.name.len());
        let width = names.max().unwrap_or_default();
        let lines = installations.map(|plan| InstallationLine {
            name: output::pad_text(&plan.installation.name, width),
            steps: plan.steps.len()
                + plan.deletions().count()
                + usize::from(plan.helm_release().is_some()),
            done: 0,
            waiting: BTreeMap::new(),
            failed: 0,
            bar: None,
        });
        Self(lines.collect())
    }

    /// Counts an object that was applied or deleted.
    pub(super) fn count(&mut self, screen: &Screen, part: usize, key: &ObjectKey) {
        if let Some(installation) = self.0.get_mut(part) {
            installation.done += 1;
            installation.waiting.remove(key);
            installation.show(screen);
        }
    }

    pub(super) fn show_waiting(
        &mut self,
        screen: &Screen,
        part: usize,
        key: &ObjectKey,
        status: ReadinessStatus,
        message: &str,
    ) {
        let Some(installation) = self.0.get_mut(part) else {
            return;
        };
        if status == ReadinessStatus::Current {
            installation.waiting.remove(key);
        } else {
            let message = message.to_owned();
            installation.waiting.insert(key.clone(), message);
        }
        installation.show(screen);
    }

    pub(super) fn count_failure(&mut self, screen: &Screen, part: usize, key: &ObjectKey) {
        if let Some(installation) = self.0.get_mut(part) {
            installation.failed += 1;
            installation.waiting.remove(key);
            installation.show(screen);
        }
    }

    /// Restarts the count for the rollback.
    pub(super) fn begin_rollback(&mut self, part: usize) {
        if let Some(installation) = self.0.get_mut(part) {
            installation.done = 0;
            installation.waiting.clear();
        }
    }

    pub(super) fn finish(&mut self) {
        for bar in self.0.iter_mut().filter_map(|it| it.bar.take()) {
            bar.finish_and_clear();
        }
    }
}

impl InstallationLine {
    fn show(&mut self, screen: &Screen) {
        if self.bar.is_none() {
            self.bar = screen.bar();
        }
        if let Some(bar) = &self.bar {
            bar.set_message(output::escape_text(&self.text()));
        }
    }

    /// Formats the line: `… web  7/9  Deployment web: 1/2 ready, and 2 more`.
    fn text(&self) -> String {
        let Self {
            name, steps, done, ..
        } = self;
        let mark = match self.failed {
            0 if done >= steps && self.waiting.is_empty() => "✓",
            0 => "…",
            _ => "✗",
        };
        let text = format!("{mark} {name}  {done}/{steps}");
        let Some((key, message)) = self.waiting.first_key_value() else {
            return text;
        };
        let more = match self.waiting.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        format!("{text}  {key}: {message}{more}")
    }
}
