//! How an installation stands: one state and its reason, from its record and its live objects (semantics 17.6).
//!
//! `list`, `status`, `upgrade`, `doctor`, the waves of `--clusters` and those of the core set share this judgement. It reads nothing from
//! the cluster: all input is in [`Facts`]. If the state is unknown, it is [`Word::Unknown`], and never broken or deleted.

mod failed;
mod interrupted;
pub mod object;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::Verb;
use crate::continuation::Continuation;
use crate::restored::RecordOlder;
use common::api::catalogue::AddonCatalogue;
use common::api::conditions::{
    self, CONTESTED, Condition, DELETION_BLOCKED, NEEDS_CONFIRMATION, STALLED, UNLISTED,
};
use common::api::installation::{AddonInstallation, Installed, Phase};
use common::catalogue::{Catalogue, orphan};
use common::pin::OtherCluster;

use failed::Failed;
use object::{ObjectHealth, tells};

/// How an installation stands: `Degraded: Deployment web 1/2 ready`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The state.
    pub word: Word,
    /// The reason; empty if there is none.
    pub message: String,
    /// How to continue an operation that failed, was interrupted or has not begun, if the record says it.
    pub next: Option<Continuation>,
}

/// The states of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Nothing needs attention.
    Ready,
    /// Its spec suspends it, so the loop leaves it alone.
    Suspended,
    /// Objects are not ready.
    Degraded,
    /// None of its objects can be read.
    Unknown,
    /// Its last operation failed.
    Failed,
    /// An operation is running.
    Progressing,
    /// The client of its operation stopped renewing the lock.
    Interrupted,
    /// Its spec has not been applied yet.
    Pending,
    /// It is being uninstalled.
    Uninstalling,
    /// Its catalogue, or its add-on there, no longer exists.
    Orphaned,
    /// Its version was removed from its catalogue.
    Unlisted,
    /// It does not fit its cluster.
    Incompatible,
    /// A change of it needs confirmation by a person.
    NeedsConfirmation,
    /// Another client keeps changing its objects.
    Contested,
    /// No operation can succeed with its current spec.
    Stalled,
    /// Its record was restored from an older backup.
    RecordOlderThanCluster,
    /// Its record was made for another cluster.
    OtherCluster,
}

/// The facts that decide the state of an installation, besides its record.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The state of its objects.
    pub health: &'a Health,
    /// The contents of the catalogues. With `None`, they were not read, and the conditions of the record count.
    pub offered: Option<&'a Offered<'a>>,
    /// Why the record belongs to another cluster.
    pub other: Option<&'a OtherCluster>,
    /// The time in the cluster of the record.
    pub now: Timestamp,
}

/// The state of the objects of an installation.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The objects.
    pub objects: Vec<ObjectHealth>,
    /// The number of objects that were assessed. If only those that are not ready were requested, [`Health::objects`] does not contain all
    /// of them.
    pub judged: usize,
    /// Set if they show that the record is older than the cluster, and so says nothing about them (semantics 13.10).
    pub older: Option<RecordOlder>,
}

impl Health {
    /// Whether all objects that matter exist and are ready. An object that cannot be read does not count as ready.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let is_unwell = |one: &ObjectHealth| one.is_trouble() || one.is_unread();
        self.older.is_none() && !self.objects.iter().any(is_unwell)
    }
}

/// The catalogues of a cluster as they are now. Conditions that a loop wrote about them may be out of date.
#[derive(Clone, Debug)]
pub struct Offered<'a> {
    /// The catalogues.
    pub catalogues: &'a [AddonCatalogue],
    /// Their entries.
    pub entries: Arc<Catalogue>,
}

/// Determines how an installation stands.
#[must_use]
pub fn standing(record: &AddonInstallation, facts: &Facts<'_>) -> Standing {
    if let Some(other) = facts.other {
        return Word::OtherCluster.because(other);
    }
    let status = record.status.as_ref();
    if let Some(operation) = status.and_then(|status| status.operation.as_ref()) {
        let verb = &operation.verb;
        return match interrupted::continued_by(record, operation, facts.now) {
            Some(next) => Word::Interrupted.because(verb).continued_by(next),
            None => Word::Progressing.because(format!("{verb} by {}", operation.holder)),
        };
    }
    if let Some(older) = &facts.health.older {
        return Word::RecordOlderThanCluster.because(older);
    }
    let failed = Failed::of(record);
    let standing = judged(record, facts, failed.as_ref());
    match failed {
        Some(failed) => standing.continued_by(failed.next),
        None => standing,
    }
}

/// Like [`standing`], for a record of this cluster without a running operation. `failed` is the last operation, if it failed.
fn judged(record: &AddonInstallation, facts: &Facts<'_>, failed: Option<&Failed>) -> Standing {
    let status = record.status.as_ref();
    let phase = status.and_then(|status| status.phase);
    let health = facts.health;
    let mut troubles = health.objects.iter().filter(|object| object.is_trouble());
    if let Some(trouble) = troubles.next() {
        // A missing object that was never created does not explain the failure.
        let is_partial = health.objects.iter().any(|object| object.planned);
        let trouble = match failed.filter(|_| is_partial) {
            Some(failed) => failed.why.clone(),
            None => in_short(trouble, troubles.count()),
        };
        return match failed::operation(status) {
            Some(operation) => Word::Failed.because(format!("{operation}: {trouble}")),
            None if phase == Some(Phase::Failed) => Word::Failed.because(trouble),
            None => Word::Degraded.because(trouble),
        };
    }
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let raised = |r#type: &str| conditions::raised(conditions, r#type).map(|it| &it.message);
    if record.metadata.deletion_timestamp.is_some() && phase != Some(Phase::Failed) {
        let blocked = raised(DELETION_BLOCKED).cloned();
        return Word::Uninstalling.because(blocked.unwrap_or_default());
    }
    if let Some(unreadable) = &record.spec.unreadable {
        return Word::Stalled.because(unreadable);
    }
    if record.spec.suspend {
        return Word::Suspended.into();
    }
    let misfit = |condition: &&Condition| {
        condition.r#type == conditions::COMPATIBLE && condition.status == "False"
    };
    if let Some(misfit) = conditions.iter().find(misfit) {
        return Word::Incompatible.because(&misfit.message);
    }
    let stalled = raised(STALLED).cloned();
    match phase {
        None | Some(Phase::Pending) => match stalled {
            Some(stalled) => Word::Pending.because(stalled),
            None => pending(record, ""),
        },
        Some(Phase::Failed) => {
            let why = stalled.or_else(|| failed::operation(status));
            Word::Failed.because(why.unwrap_or_default())
        }
        Some(Phase::Uninstalling) => Word::Uninstalling.into(),
        Some(Phase::Progressing) => Word::Progressing.into(),
        Some(Phase::Ready | Phase::Installed) => {
            let lost = match facts.offered {
                Some(offered) => lost(record, offered),
                None => raised(UNLISTED).map(|why| Word::Unlisted.because(why)),
            };
            let confirm = || raised(NEEDS_CONFIRMATION).map(|why| (Word::NeedsConfirmation, why));
            let contested = || raised(CONTESTED).map(|why| (Word::Contested, why));
            let stalled = || raised(STALLED).map(|why| (Word::Stalled, why));
            let noted = || confirm().or_else(contested).or_else(stalled);
            let changed = || {
                let is_changed = record.is_observed() == Some(false);
                is_changed.then(|| pending(record, "its spec was changed and is not applied"))
            };
            lost.or_else(|| noted().map(|(word, why)| word.because(why)))
                .or_else(changed)
                .or_else(|| unread(health))
                .unwrap_or_else(|| Word::Ready.into())
        }
    }
}

/// Returns the state of an installation whose spec has to be applied, by an upgrade to the version that it names.
fn pending(record: &AddonInstallation, why: &str) -> Standing {
    let reference = &record.spec.addon_ref;
    let target = Installed {
        version: reference.version.clone().unwrap_or_default(),
        id: reference.id.clone().unwrap_or_default(),
        ..Installed::default()
    };
    let verb = Verb::Upgrade.as_recorded();
    let next = Continuation::of(record, verb, Some(&target));
    Word::Pending.because(why).continued_by(next)
}

/// Returns the state of an installation with objects that this client cannot read, if all others are ready. Unreadable objects of kinds
/// that are ready once they exist are mentioned only if nothing can be read.
fn unread(health: &Health) -> Option<Standing> {
    let unread: Vec<_> = health
        .objects
        .iter()
        .filter(|one| one.is_unread())
        .collect();
    let is_all = unread.len() >= health.judged;
    let mut told = unread.into_iter().filter(|one| is_all || tells(&one.key));
    let first = told.next()?;
    let word = if is_all { Word::Unknown } else { Word::Ready };
    Some(word.because(in_short(first, told.count())))
}

/// Returns the state of an installation whose catalogue, add-on or version no longer exists; `None` if they exist.
fn lost(record: &AddonInstallation, offered: &Offered<'_>) -> Option<Standing> {
    if let Some(lost) = orphan::lost(record, offered.catalogues) {
        return Some(Word::Orphaned.because(lost));
    }
    let unlisted = orphan::unlisted(record, &offered.entries)?;
    Some(Word::Unlisted.because(unlisted))
}

/// Describes the first object with a problem: `Deployment web 1/2 ready (ImagePullBackOff) and 2 more`.
fn in_short(trouble: &ObjectHealth, more: usize) -> String {
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let blocker = trouble.blocker.as_ref();
    let why = blocker.map_or_else(String::new, |blocker| format!(" ({})", blocker.reason));
    let (key, message) = (&trouble.key, trouble.message());
    format!("{} {} {message}{why}{more}", key.kind, key.name)
}

impl Standing {
    /// Whether the installation needs no attention.
    #[must_use]
    pub fn is_good(&self) -> bool {
        matches!(self.word, Word::Ready | Word::Suspended)
    }

    /// Adds how to continue the operation.
    fn continued_by(self, next: Continuation) -> Self {
        Self {
            next: Some(next),
            ..self
        }
    }
}

impl Word {
    /// Returns the standing with this state and a reason.
    #[must_use]
    pub fn because(self, why: impl fmt::Display) -> Standing {
        Standing {
            word: self,
            message: why.to_string(),
            next: None,
        }
    }
}

impl From<Word> for Standing {
    fn from(word: Word) -> Self {
        word.because("")
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => write!(f, "{}", self.word),
            why => write!(f, "{}: {why}", self.word),
        }
    }
}

#[cfg(test)]
mod tests;
