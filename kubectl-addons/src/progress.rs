//! Shows the progress of the engine: a live list on a terminal, plain lines elsewhere.
//!
//! Everything goes to stderr. A command for one installation shows its objects (`objects`). One for several shows a line for each
//! installation (`installations`), except in a log or with `-v`. [`crate::display`] prints what these modules return.

mod installations;
mod layout;
mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use addons_engine::Event;
use addons_plan::InstallationPlan;
use addons_plan::changes::RefusalRemedy;
use addons_plan::readiness::ReadinessStatus;
use common::manifest::key::ObjectKey;
use common::text::and_more;
use installations::InstallationLines;
use objects::ObjectLines;

pub use layout::format_live_work;

use crate::events;
use crate::output::live::ScreenSize;
use crate::words::hint::{indent_lines, object_hints};

/// The progress of a plan. Methods return the lines that stay on the screen.
pub struct ProgressDisplay {
    form: ProgressForm,
    /// The size of the terminal. `None` in a log.
    terminal: Option<ScreenSize>,
    began: Instant,
    /// How long the operation may take.
    timeout: Duration,
    /// What was said last about the wait for an object.
    waits: BTreeMap<(usize, ObjectKey), (ReadinessStatus, String)>,
    /// The objects whose failure was shown.
    failures: ShownFailures,
    /// The warnings of the server, with the objects that they concern.
    warnings: BTreeMap<String, Vec<ObjectKey>>,
}

/// The objects whose failure was shown when it happened, with the number of their installation in the plan.
pub type ShownFailures = BTreeSet<(usize, ObjectKey)>;

/// Whether objects or installations have lines.
enum ProgressForm {
    Objects(ObjectLines),
    Installations(InstallationLines),
}

impl ProgressDisplay {
    /// Creates the display. `terminal` is the terminal at stderr if its cursor can move, `brief` that an installation has a single line.
    pub fn new(
        terminal: Option<ScreenSize>,
        brief: bool,
        plans: &[&InstallationPlan],
        timeout: Duration,
    ) -> Self {
        let began = Instant::now();
        let form = if terminal.is_some() && brief {
            ProgressForm::Installations(InstallationLines::new(plans))
        } else {
            ProgressForm::Objects(ObjectLines::new(plans, began))
        };
        Self {
            form,
            terminal,
            began,
            timeout,
            waits: BTreeMap::new(),
            failures: BTreeSet::new(),
            warnings: BTreeMap::new(),
        }
    }

    /// Changes the size of the terminal.
    pub fn resize(&mut self, size: ScreenSize) {
        if self.terminal.is_some() {
            self.terminal = Some(size);
        }
    }

    /// The lines at the bottom of a terminal, `rows` at most. None in a log.
    pub fn live_lines(&self, now: Instant, rows: usize) -> Vec<String> {
        let Some(size) = self.terminal else {
            return Vec::new();
        };
        let (blocks, is_waiting) = match &self.form {
            ProgressForm::Objects(objects) => {
                (objects.live_blocks(size.width), objects.is_waiting())
            }
            ProgressForm::Installations(installations) => (
                installations.live_blocks(size.width),
                installations.is_waiting(),
            ),
        };
        let elapsed = now.saturating_duration_since(self.began);
        let deadline = is_waiting.then(|| layout::format_deadline(elapsed, self.timeout));
        let size = ScreenSize {
            height: rows,
            ..size
        };
        layout::fit_blocks(blocks, deadline.into_iter().collect(), size)
    }

    /// Returns the last lines of the list, and the failures that it showed. The report names what is unfinished.
    pub fn finish(self) -> (Vec<String>, ShownFailures) {
        let mut lines = match &self.form {
            ProgressForm::Objects(objects) => objects.last_lines(self.width()),
            ProgressForm::Installations(installations) => installations.last_lines(),
        };
        for (message, keys) in &self.warnings {
            if let [first, others @ ..] = keys.as_slice() {
                let others = and_more(others.len());
                lines.push(format!("warning: {first}{others}: {message}"));
            }
        }
        (lines, self.failures)
    }

    /// Shows that an installation failed and is rolled back, which may take as long again. `text` describes the rollback.
    pub fn begin_rollback(&mut self, part: usize, text: &str) -> Vec<String> {
        self.began = Instant::now();
        let width = self.width();
        let mut lines = match &mut self.form {
            ProgressForm::Objects(objects) => objects.begin_rollback(part, width),
            ProgressForm::Installations(installations) => {
                installations.begin_rollback(part);
                Vec::new()
            }
        };
        lines.extend(text.lines().map(str::to_owned));
        lines
    }

    /// Shows an event of an installation, whose plan is the `part`th.
    pub fn show(&mut self, part: usize, plan: &InstallationPlan, event: &Event) -> Option<String> {
        if self.is_repeated(part, event) {
            return None;
        }
        events::emit_executing(plan, event);
        self.line_of_event(part, plan, event)
    }

    fn line_of_event(
        &mut self,
        part: usize,
        plan: &InstallationPlan,
        event: &Event,
    ) -> Option<String> {
        let width = self.width();
        match event {
            Event::WaitingForLock { holder } => Some(format!("… waiting for {holder} to finish")),
            Event::Applied { key, .. } => match &mut self.form {
                ProgressForm::Objects(objects) => objects.count_applied(part, key, plan, width),
                ProgressForm::Installations(installations) => {
                    installations.count(part, key);
                    None
                }
            },
            Event::Waiting { key, readiness } => {
                let (status, message) = (readiness.status, &readiness.message);
                match &mut self.form {
                    ProgressForm::Objects(objects) => {
                        let width = self.terminal.map(|size| size.width);
                        objects.note_wait(key, status, message, width)
                    }
                    ProgressForm::Installations(installations) => {
                        installations.note_wait(part, key, status, message);
                        None
                    }
                }
            }
            Event::Pruned { key } => match &mut self.form {
                ProgressForm::Objects(objects) => objects.note_pruned(part, key, width),
                ProgressForm::Installations(installations) => {
                    installations.count(part, key);
                    None
                }
            },
            // One warning may concern hundreds of objects.
            Event::Warning { key, message } => {
                let keys = self.warnings.entry(message.clone()).or_default();
                keys.push(key.clone());
                None
            }
            Event::Refused {
                key,
                message,
                remedy,
            } => {
                let way_out = remedy_text(remedy, key, plan);
                Some(format!("… {key}  {message}{way_out}"))
            }
            // The report lists conflicts with both values.
            Event::Settled(_) => None,
            Event::Failed {
                key,
                message,
                remedy,
            } => {
                match &mut self.form {
                    ProgressForm::Objects(objects) => objects.end_wait(key),
                    ProgressForm::Installations(installations) => {
                        installations.count_failure(part, key)
                    }
                }
                self.failures.insert((part, key.clone()));
                let way_out = remedy.as_ref().map(|remedy| remedy_text(remedy, key, plan));
                let way_out = way_out.unwrap_or_default();
                Some(format!("✗ {key}  {message}{way_out}"))
            }
        }
    }

    /// Whether an event only repeats what was said last about the wait for its object.
    fn is_repeated(&mut self, part: usize, event: &Event) -> bool {
        let (key, said) = match event {
            Event::Waiting { key, readiness } => {
                (key, (readiness.status, readiness.message.clone()))
            }
            Event::Refused { key, message, .. } => {
                (key, (ReadinessStatus::InProgress, message.clone()))
            }
            _ => return false,
        };
        let before = self.waits.insert((part, key.clone()), said.clone());
        before == Some(said)
    }

    /// The width of the terminal. A log has no limit.
    fn width(&self) -> usize {
        self.terminal.map_or(usize::MAX, |size| size.width)
    }
}

/// Formats the advice for an object, below its failure.
fn remedy_text(remedy: &RefusalRemedy, key: &ObjectKey, plan: &InstallationPlan) -> String {
    indent_lines(&object_hints(remedy, key, &plan.installation))
}

#[cfg(test)]
mod tests;
