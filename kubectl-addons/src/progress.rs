//! Shows what the engine does while it does it: a live list on a terminal, plain lines elsewhere.
//!
//! Everything goes to stderr. A line is printed once a rank or an object is done, in the words of the plan;
//! on a terminal the others stand below, each with the reason why it is waiting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use addons_engine::Event;
use common::manifest::key::ObjectKey;
use common::plan::changes::Remedy;
use common::plan::order::Rank;
use common::plan::{InstallationPlan, summary};
use common::readiness::Status;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use addons_operation::elapsed::seconds;

use crate::output;
use crate::words::hint;
use crate::words::plan as words;

/// The progress of a plan.
pub struct Progress {
    plan: Arc<addons_operation::Plan>,
    began: Instant,
    /// `None` where stderr is not a terminal.
    live: Option<MultiProgress>,
    parts: Vec<Part>,
    waiting: BTreeMap<ObjectKey, Option<ProgressBar>>,
}

/// One installation of the command.
struct Part {
    /// Its name, where the command has several.
    name: String,
    ranks: BTreeMap<Rank, Counted>,
    deletions: Counted,
}

/// Objects that are counted rather than listed: those of one rank, or many deletions.
struct Counted {
    steps: usize,
    done: usize,
    /// From the first of them on.
    began: Option<Instant>,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// `live`: whether stderr is a terminal that can move its cursor.
    pub fn new(live: bool, plan: &Arc<addons_operation::Plan>) -> Self {
        let installations = &plan.installations;
        let parts = installations.iter().map(|planned| Part {
            name: match installations.len() {
                1 => String::new(),
                _ => format!("{}  ", planned.plan.installation.name),
            },
            ranks: summary::steps_by_rank(&planned.plan)
                .into_iter()
                .map(|(rank, steps)| (rank, Counted::new(steps)))
                .collect(),
            deletions: Counted::new(planned.plan.prune.iter().flatten().count()),
        });
        Self {
            parts: parts.collect(),
            plan: Arc::clone(plan),
            began: Instant::now(),
            live: live.then(MultiProgress::new),
            waiting: BTreeMap::new(),
        }
    }

    /// Ends the live list; the report names what is unfinished.
    pub fn finish(mut self) {
        self.end_ranks();
        for bar in std::mem::take(&mut self.waiting).into_values().flatten() {
            bar.finish_and_clear();
        }
    }

    fn plan(&self, part: usize) -> Option<&InstallationPlan> {
        Some(&self.plan.installations.get(part)?.plan)
    }
}

impl Counted {
    fn new(steps: usize) -> Self {
        Self {
            steps,
            done: 0,
            began: None,
            bar: None,
        }
    }

    /// Counts one; the summary line where it was the last.
    fn count(&mut self, title: &str, new_bar: Option<ProgressBar>) -> Option<String> {
        self.done += 1;
        let (done, steps) = (self.done, self.steps);
        let began = *self.began.get_or_insert_with(Instant::now);
        if done < steps {
            let bar = self
                .bar
                .get_or_insert_with(|| new_bar.unwrap_or_else(ProgressBar::hidden));
            bar.set_message(output::plain(&format!("… {title:<40} {done}/{steps}")));
            return None;
        }
        self.clear();
        let elapsed = seconds(began.elapsed());
        Some(format!("✓ {title:<40} {steps}/{steps}  {elapsed}"))
    }

    /// The summary line of a rank that was not completed.
    fn end(&mut self, title: &str) -> Option<String> {
        self.clear();
        let (done, steps) = (self.done, self.steps);
        (done > 0 && done < steps).then(|| format!("✗ {title:<40} {done}/{steps}"))
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Progress {
    /// Shows one event of an installation.
    pub fn show(&mut self, part: usize, event: &Event) {
        match event {
            Event::WaitingForLock { holder } => {
                self.line(&format!("… waiting for {holder} to finish"))
            }
            Event::Applied { key, .. } => self.applied(part, key),
            Event::Waiting { key, readiness } => {
                let message = self.masked(part, &readiness.message);
                self.waiting(key, readiness.status, &message);
            }
            Event::Pruned { key } => {
                self.end_wait(key);
                self.pruned(part, key);
            }
            Event::Warning { key, message } => {
                let message = self.masked(part, message);
                self.line(&format!("warning: {key}: {message}"));
            }
            // The report lists them with both values.
            Event::Settled(_) => {}
            Event::Failed {
                key,
                message,
                remedy,
            } => {
                self.end_wait(key);
                let message = self.masked(part, message);
                let way_out = self.way_out(part, key, *remedy);
                self.line(&format!("✗ {key}  {message}{way_out}"));
            }
        }
    }

    /// Counts an object; its rank has a line of its own once it is complete.
    fn applied(&mut self, part: usize, key: &ObjectKey) {
        let new_bar = self.bar();
        let step = self.plan(part).and_then(|plan| plan.step(key));
        let Some(rank) = step.map(|step| Rank::of(key, Some(&step.object))) else {
            return;
        };
        let Some(part) = self.parts.get_mut(part) else {
            return;
        };
        let Some(line) = part.ranks.get_mut(&rank) else {
            return;
        };
        let title = format!("{}{}", part.name, rank.title());
        let shown = line.count(&title, new_bar);
        shown.iter().for_each(|text| self.line(text));
    }

    /// Shows a deletion, or counts it where the plan counted them too.
    fn pruned(&mut self, part: usize, key: &ObjectKey) {
        let new_bar = self.bar();
        let deleted = self.plan(part).map_or("", words::deleted);
        let Some(part) = self.parts.get_mut(part) else {
            return;
        };
        let shown = if part.deletions.steps > words::LISTED {
            let title = format!("{}{deleted}", part.name);
            part.deletions.count(&title, new_bar)
        } else {
            Some(format!("- {key}  {deleted}"))
        };
        shown.iter().for_each(|text| self.line(text));
    }

    /// Shows how far the ranks came that were begun and not completed.
    fn end_ranks(&mut self) {
        let mut lines = Vec::new();
        for (part, planned) in self.parts.iter_mut().zip(&self.plan.installations) {
            for (rank, line) in &mut part.ranks {
                let title = format!("{}{}", part.name, rank.title());
                lines.extend(line.end(&title));
            }
            let title = format!("{}{}", part.name, words::deleted(&planned.plan));
            lines.extend(part.deletions.end(&title));
        }
        lines.iter().for_each(|line| self.line(line));
    }

    /// A message of the server, without values that the plan hides.
    fn masked(&self, part: usize, message: &str) -> String {
        let plan = self.plan(part);
        plan.map_or_else(|| message.to_owned(), |plan| plan.mask.text(message))
    }

    /// What the user can do about an object, below its failure.
    fn way_out(&self, part: usize, key: &ObjectKey, remedy: Option<Remedy>) -> String {
        let lines = remedy
            .zip(self.plan(part))
            .map(|(remedy, plan)| hint::below(&hint::of_object(remedy, key, &plan.installation)));
        lines.unwrap_or_default()
    }

    fn waiting(&mut self, key: &ObjectKey, status: Status, message: &str) {
        let elapsed = seconds(self.began.elapsed());
        let name = key.to_string();
        match status {
            Status::Current => {
                self.end_wait(key);
                self.line(&format!("✓ {name:<40} {message}  {elapsed}"));
            }
            Status::InProgress | Status::Failed | Status::Terminating => {
                let text = format!("… {name:<40} {message}");
                if !self.waiting.contains_key(key) {
                    let bar = self.bar();
                    self.waiting.insert(key.clone(), bar);
                }
                match self.waiting.get(key) {
                    Some(Some(bar)) => bar.set_message(output::plain(&text)),
                    _ => self.line(&text),
                }
            }
        }
    }

    fn end_wait(&mut self, key: &ObjectKey) {
        if let Some(Some(bar)) = self.waiting.remove(key) {
            bar.finish_and_clear();
        }
    }

    fn bar(&self) -> Option<ProgressBar> {
        let style = ProgressStyle::with_template("  {wide_msg}").ok()?;
        Some(
            self.live
                .as_ref()?
                .add(ProgressBar::new_spinner().with_style(style)),
        )
    }

    fn line(&self, text: &str) {
        let text = format!("  {}", text.trim_end());
        // A closed stderr does not stop an operation.
        match &self.live {
            Some(live) => drop(live.println(output::plain(&text))),
            None => output::note(&text),
        }
    }
}
