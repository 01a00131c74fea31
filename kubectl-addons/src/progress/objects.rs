//! Shows every object: a line when a rank is complete or an object is ready, and on a terminal the objects that are waited for below.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use addons_operation::text::seconds;
use addons_plan::order::ObjectRank;
use addons_plan::readiness::ReadinessStatus;
use addons_plan::{InstallationPlan, summary};
use common::manifest::key::ObjectKey;

use super::layout::{format_block, format_columns};
use crate::words::plan as words;

/// The progress of all objects. Methods return the lines that stay.
pub(super) struct ObjectLines {
    began: Instant,
    parts: Vec<InstallationRanks>,
    waiting: BTreeMap<ObjectKey, String>,
}

/// The progress of an installation.
struct InstallationRanks {
    /// The name, if the command has several installations.
    name: String,
    /// The word for its deletions.
    deleted: &'static str,
    ranks: BTreeMap<ObjectRank, ObjectCount>,
    deletions: ObjectCount,
}

/// Objects that are counted and not listed: those of a rank, or many deletions.
struct ObjectCount {
    steps: usize,
    done: BTreeSet<ObjectKey>,
    /// When the first of them was counted.
    began: Option<Instant>,
}

impl ObjectLines {
    pub(super) fn new(plans: &[&InstallationPlan], began: Instant) -> Self {
        let parts = plans.iter().map(|plan| InstallationRanks {
            name: match plans.len() {
                1 => String::new(),
                _ => format!("{}  ", plan.installation.name),
            },
            deleted: words::deleted_word(plan),
            ranks: summary::steps_by_rank(plan)
                .into_iter()
                .map(|(rank, steps)| (rank, ObjectCount::new(steps)))
                .collect(),
            deletions: ObjectCount::new(plan.deletions().count()),
        });
        Self {
            began,
            parts: parts.collect(),
            waiting: BTreeMap::new(),
        }
    }

    /// Counts an object. Its rank gets a line once it is complete.
    pub(super) fn count_applied(
        &mut self,
        part: usize,
        key: &ObjectKey,
        plan: &InstallationPlan,
        width: usize,
    ) -> Option<String> {
        let step = plan.step(key)?;
        let rank = ObjectRank::from_object(key, Some(&step.object));
        let part = self.parts.get_mut(part)?;
        let title = format!("{}{}", part.name, rank.title());
        part.ranks.get_mut(&rank)?.count(key, &title, width)
    }

    /// Shows a deletion, or counts it if there are too many to list.
    pub(super) fn note_pruned(
        &mut self,
        part: usize,
        key: &ObjectKey,
        width: usize,
    ) -> Option<String> {
        self.end_wait(key);
        let part = self.parts.get_mut(part)?;
        if part.deletions.steps > words::MAX_LISTED_OBJECTS {
            let title = format!("{}{}", part.name, part.deleted);
            part.deletions.count(key, &title, width)
        } else {
            Some(format!("- {key}  {}", part.deleted))
        }
    }

    /// Notes what an object waits for. The line stays if the object is ready, and in a log.
    pub(super) fn note_wait(
        &mut self,
        key: &ObjectKey,
        status: ReadinessStatus,
        message: &str,
        width: Option<usize>,
    ) -> Option<String> {
        let name = key.to_string();
        if status == ReadinessStatus::Current {
            self.end_wait(key);
            let rest = format!("{message}  {}", seconds(self.began.elapsed()));
            let width = width.unwrap_or(usize::MAX);
            return Some(format_columns("✓", &name, &rest, width));
        }
        self.waiting.insert(key.clone(), message.to_owned());
        match width {
            Some(_) => None,
            None => Some(format_columns("…", &name, message, usize::MAX)),
        }
    }

    pub(super) fn end_wait(&mut self, key: &ObjectKey) {
        self.waiting.remove(key);
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The lines of ranks that are not complete, and of objects that are waited for.
    pub(super) fn live_blocks(&self, width: usize) -> Vec<Vec<String>> {
        let counts = self.parts.iter().flat_map(|part| {
            let ranks = part.ranks.iter();
            let ranks = ranks.map(|(rank, count)| (rank.title(), count));
            let all = ranks.chain([(part.deleted, &part.deletions)]);
            all.filter(|(_, count)| count.is_partial())
                .map(|(title, count)| {
                    let title = format!("{}{title}", part.name);
                    format_block("…", &title, &count.share(), width)
                })
        });
        let waits = self.waiting.iter();
        let waits = waits.map(|(key, why)| format_block("…", &key.to_string(), why, width));
        counts.chain(waits).collect()
    }

    /// Returns the progress of an installation's ranks. The rollback has another plan, of which only the waits have lines.
    pub(super) fn begin_rollback(&mut self, part: usize, width: usize) -> Vec<String> {
        self.waiting.clear();
        let Some(part) = self.parts.get_mut(part) else {
            return Vec::new();
        };
        let lines = part.partial_lines(width);
        part.ranks.clear();
        part.deletions = ObjectCount::new(0);
        lines
    }

    /// Returns the progress of ranks that were begun and not completed.
    pub(super) fn last_lines(&self, width: usize) -> Vec<String> {
        let parts = self.parts.iter();
        parts.flat_map(|part| part.partial_lines(width)).collect()
    }
}

impl InstallationRanks {
    /// Returns the progress of ranks that were begun and not completed.
    fn partial_lines(&self, width: usize) -> Vec<String> {
        let ranks = self.ranks.iter();
        let ranks = ranks.map(|(rank, count)| (rank.title(), count));
        let all = ranks.chain([(self.deleted, &self.deletions)]);
        let partial = all.filter(|(_, count)| count.is_partial());
        partial
            .map(|(title, count)| {
                let title = format!("{}{title}", self.name);
                format_columns("✗", &title, &count.share(), width)
            })
            .collect()
    }
}

impl ObjectCount {
    fn new(steps: usize) -> Self {
        Self {
            steps,
            done: BTreeSet::new(),
            began: None,
        }
    }

    /// Counts an object once. Returns a line if it was the last.
    fn count(&mut self, key: &ObjectKey, title: &str, width: usize) -> Option<String> {
        let is_new = self.done.insert(key.clone());
        let began = *self.began.get_or_insert_with(Instant::now);
        (is_new && self.done.len() == self.steps).then(|| {
            let rest = format!("{}  {}", self.share(), seconds(began.elapsed()));
            format_columns("✓", title, &rest, width)
        })
    }

    /// Whether some of the objects are done.
    fn is_partial(&self) -> bool {
        !self.done.is_empty() && self.done.len() < self.steps
    }

    /// `2/3`
    fn share(&self) -> String {
        format!("{}/{}", self.done.len(), self.steps)
    }
}
