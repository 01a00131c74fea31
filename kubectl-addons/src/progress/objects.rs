//! Shows every object: a line when a rank is complete or an object is ready, and on a terminal one below for each object that is waited
//! for.

use std::collections::BTreeMap;
use std::time::Instant;

use addons_plan::order::ObjectRank;
use addons_plan::readiness::ReadinessStatus;
use addons_plan::{InstallationPlan, summary};
use common::manifest::key::ObjectKey;
use indicatif::ProgressBar;

use addons_operation::text::seconds;

use super::Screen;
use crate::output;
use crate::words::plan as words;

/// The progress of all objects.
pub(super) struct ObjectLines {
    began: Instant,
    parts: Vec<InstallationRanks>,
    waiting: BTreeMap<ObjectKey, Option<ProgressBar>>,
}

/// The progress of an installation.
struct InstallationRanks {
    /// The name, if the command has several installations.
    name: String,
    /// The word for its deletions.
    deleted: &'static str,
    ranks: BTreeMap<ObjectRank, CountedLine>,
    deletions: CountedLine,
}

/// Objects that are counted and not listed: those of a rank, or many deletions.
struct CountedLine {
    steps: usize,
    done: usize,
    /// When the first of them was counted.
    began: Option<Instant>,
    bar: Option<ProgressBar>,
}

impl ObjectLines {
    pub(super) fn new(plan: &addons_operation::Plan) -> Self {
        let installations = &plan.installations;
        let parts = installations.iter().map(|planned| InstallationRanks {
            name: match installations.len() {
                1 => String::new(),
                _ => format!("{}  ", planned.plan.installation.name),
            },
            deleted: words::deleted_word(&planned.plan),
            ranks: summary::steps_by_rank(&planned.plan)
                .into_iter()
                .map(|(rank, steps)| (rank, CountedLine::new(steps)))
                .collect(),
            deletions: CountedLine::new(planned.plan.deletions().count()),
        });
        Self {
            began: Instant::now(),
            parts: parts.collect(),
            waiting: BTreeMap::new(),
        }
    }

    /// Counts an object. Its rank gets a line once it is complete.
    pub(super) fn count_applied(
        &mut self,
        screen: &Screen,
        part: usize,
        key: &ObjectKey,
        plan: &InstallationPlan,
    ) {
        let Some(step) = plan.step(key) else {
            return;
        };
        let rank = ObjectRank::from_object(key, Some(&step.object));
        let Some(part) = self.parts.get_mut(part) else {
            return;
        };
        let Some(line) = part.ranks.get_mut(&rank) else {
            return;
        };
        let title = format!("{}{}", part.name, rank.title());
        line.count(&title, screen);
    }

    /// Shows a deletion, or counts it if there are too many to list.
    pub(super) fn show_pruned(&mut self, screen: &Screen, part: usize, key: &ObjectKey) {
        self.end_wait(key);
        let Some(part) = self.parts.get_mut(part) else {
            return;
        };
        if part.deletions.steps > words::MAX_LISTED_OBJECTS {
            let title = format!("{}{}", part.name, part.deleted);
            part.deletions.count(&title, screen);
        } else {
            screen.line(&format!("- {key}  {}", part.deleted));
        }
    }

    pub(super) fn show_waiting(
        &mut self,
        screen: &Screen,
        key: &ObjectKey,
        status: ReadinessStatus,
        message: &str,
    ) {
        let name = key.to_string();
        if status == ReadinessStatus::Current {
            self.end_wait(key);
            let elapsed = seconds(self.began.elapsed());
            return screen.line(&format!("✓ {name:<40} {message}  {elapsed}"));
        }
        let text = format!("… {name:<40} {message}");
        let bar = self
            .waiting
            .entry(key.clone())
            .or_insert_with(|| screen.bar());
        match bar {
            Some(bar) => bar.set_message(output::escape_text(&text)),
            None => screen.line(&text),
        }
    }

    pub(super) fn end_wait(&mut self, key: &ObjectKey) {
        if let Some(Some(bar)) = self.waiting.remove(key) {
            bar.finish_and_clear();
        }
    }

    /// Shows the progress of an installation's ranks. The rollback has another plan, of which only the waits have lines.
    pub(super) fn begin_rollback(&mut self, screen: &Screen, part: usize) {
        let Some(part) = self.parts.get_mut(part) else {
            return;
        };
        part.end(screen);
        part.ranks.clear();
        part.deletions = CountedLine::new(0);
        for bar in std::mem::take(&mut self.waiting).into_values().flatten() {
            bar.finish_and_clear();
        }
    }

    /// Shows the progress of ranks that were begun and not completed.
    pub(super) fn finish(&mut self, screen: &Screen) {
        for part in &mut self.parts {
            part.end(screen);
        }
        for bar in std::mem::take(&mut self.waiting).into_values().flatten() {
            bar.finish_and_clear();
        }
    }
}

impl InstallationRanks {
    /// Shows the progress of ranks that were begun and not completed.
    fn end(&mut self, screen: &Screen) {
        for (rank, line) in &mut self.ranks {
            line.end(&format!("{}{}", self.name, rank.title()), screen);
        }
        self.deletions
            .end(&format!("{}{}", self.name, self.deleted), screen);
    }
}

impl CountedLine {
    fn new(steps: usize) -> Self {
        Self {
            steps,
            done: 0,
            began: None,
            bar: None,
        }
    }

    /// Counts an object, and prints a line if it was the last.
    fn count(&mut self, title: &str, screen: &Screen) {
        self.done += 1;
        let (done, steps) = (self.done, self.steps);
        let began = *self.began.get_or_insert_with(Instant::now);
        if done < steps {
            if self.bar.is_none() {
                self.bar = screen.bar();
            }
            if let Some(bar) = &self.bar {
                bar.set_message(output::escape_text(&format!(
                    "… {title:<40} {done}/{steps}"
                )));
            }
            return;
        }
        self.clear();
        let elapsed = seconds(began.elapsed());
        screen.line(&format!("✓ {title:<40} {steps}/{steps}  {elapsed}"));
    }

    /// Prints the line of an incomplete count.
    fn end(&mut self, title: &str, screen: &Screen) {
        self.clear();
        let (done, steps) = (self.done, self.steps);
        if done > 0 && done < steps {
            screen.line(&format!("✗ {title:<40} {done}/{steps}"));
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
