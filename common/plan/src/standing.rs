//! How an installation stands, in a word and its reason: what its record and its live objects say of it.
//!
//! `list`, `status`, `upgrade`, `doctor`, the waves of `--clusters` and those of the core set ask this one function. It reads nothing:
//! what of the cluster it is judged by comes in as [`Facts`]. What is not known is [`Word::Unknown`], and never broken or gone.

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
    /// In one word.
    pub word: Word,
    /// Why; empty where there is nothing to say.
    pub message: String,
    /// How an operation is continued that failed, was interrupted or has not begun, as far as that is recorded.
    pub next: Option<Continuation>,
}

/// The states of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// All is well.
    Ready,
    /// The loops leave it alone, as its spec says.
    Suspended,
    /// Objects are not ready.
    Degraded,
    /// None of its objects can be read.
    Unknown,
    /// Its last operation failed.
    Failed,
    /// An operation is running.
    Progressing,
    /// The client of an operation is gone.
    Interrupted,
    /// What its spec asks for has not been applied yet.
    Pending,
    /// It is being uninstalled.
    Uninstalling,
    /// Its catalogue, or its add-on there, is gone.
    Orphaned,
    /// Its version was removed from its catalogue.
    Unlisted,
    /// It does not fit its cluster.
    Incompatible,
    /// A change of it waits for a person.
    NeedsConfirmation,
    /// Another client keeps changing its objects.
    Contested,
    /// No operation can help it as it is written.
    Stalled,
    /// Its record was restored from an older backup.
    RecordOlderThanCluster,
    /// Its record was made for another cluster than this one.
    OtherCluster,
}

/// What an installation is judged by besides its record.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// How its objects are.
    pub health: &'a Health,
    /// What the catalogues offer; `None` where they were not read: then what the record says of them counts.
    pub offered: Option<&'a Offered<'a>>,
    /// Why the record is not one of this cluster.
    pub other: Option<&'a OtherCluster>,
    /// The time of the cluster of the record.
    pub now: Timestamp,
}

/// How the objects of an installation are.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The objects.
    pub objects: Vec<ObjectHealth>,
    /// How many objects were judged; not all of them are in [`Health::objects`] where only those that are not ready were asked for.
    pub judged: usize,
    /// Whether they show that the record is older than the cluster: then it says nothing of them (semantics 13).
    pub older: Option<RecordOlder>,
}

impl Health {
    /// Whether all objects are there and ready, as far as that matters. What cannot be read may not be ready.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let is_unwell = |one: &ObjectHealth| one.is_trouble() || one.is_unread();
        self.older.is_none() && !self.objects.iter().any(is_unwell)
    }
}

/// What the catalogues of a cluster offer now. What a loop noted of that may be out of date.
#[derive(Clone, Debug)]
pub struct Offered<'a> {
    /// The catalogues.
    pub catalogues: &'a [AddonCatalogue],
    /// Their entries.
    pub entries: Arc<Catalogue>,
}

/// Judges an installation.
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

/// As [`standing`], where no operation is under way and the record is that of the cluster. `failed`: the last operation, where it did.
fn judged(record: &AddonInstallation, facts: &Facts<'_>, failed: Option<&Failed>) -> Standing {
    let status = record.status.as_ref();
    let phase = status.and_then(|status| status.phase);
    let health = facts.health;
    let mut troubles = health.objects.iter().filter(|object| object.is_trouble());
    if let Some(trouble) = troubles.next() {
        // An object that does not exist yet does not explain the failure.
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

/// How an installation stands whose spec is to be applied: by an upgrade to what the spec names.
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

/// How an installation stands of which some objects cannot be read by this client, and all others are ready. That objects cannot be read
/// which are ready once they exist is said only where nothing can be read.
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

/// What is gone of the origin of an installation.
fn lost(record: &AddonInstallation, offered: &Offered<'_>) -> Option<Standing> {
    if let Some(lost) = orphan::lost(record, offered.catalogues) {
        return Some(Word::Orphaned.because(lost));
    }
    let unlisted = orphan::unlisted(record, &offered.entries)?;
    Some(Word::Unlisted.because(unlisted))
}

/// `Deployment web 1/2 ready (ImagePullBackOff) and 2 more`.
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
    /// Whether nothing needs to be done.
    #[must_use]
    pub fn is_good(&self) -> bool {
        matches!(self.word, Word::Ready | Word::Suspended)
    }

    /// The standing, with what continues.
    fn continued_by(self, next: Continuation) -> Self {
        Self {
            next: Some(next),
            ..self
        }
    }
}

impl Word {
    /// The word with its reason.
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
