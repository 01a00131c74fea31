//! How an installation stands: one state and its reason, from its record and its live objects (semantics 17.6).
//!
//! `list`, `status`, `upgrade`, `doctor`, the waves of `--clusters` and those of the core set share this judgement. It reads nothing from
//! the cluster: all input is in [`StandingFacts`]. If the state is unknown, it is [`StandingState::Unknown`], and never broken or deleted.

mod failed;
mod interrupted;
pub mod object;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::Verb;
use crate::continuation::Continuation;
use crate::restored::OutdatedRecord;
use common::age::age;
use common::api::catalogue::AddonCatalogue;
use common::api::conditions::{
    self, CONTESTED, Condition, DELETION_BLOCKED, DRIFTED, LOST_CLUSTER, NEEDS_CONFIRMATION,
    STALLED, UNLISTED, WAITING,
};
use common::api::installation::{AddonInstallation, InstallationPhase, Installed};
use common::catalogue::{Catalogue, orphan};
use common::pin::OtherCluster;
use common::text::and_more;

use failed::FailedOperation;
use object::ObjectHealth;

/// The reason of an installation whose spec is not the one last installed.
const NOT_APPLIED: &str = "its spec was changed and is not applied";

/// How an installation stands: `Degraded: Deployment web 1/2 ready`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The state.
    pub state: StandingState,
    /// The reason; empty if there is none.
    pub message: String,
    /// How to continue an operation that failed, was interrupted or has not begun, if the record says it.
    pub continuation: Option<Continuation>,
}

/// The states of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum StandingState {
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
    /// A newer version waits for a maintenance window.
    Waiting,
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
pub struct StandingFacts<'a> {
    /// The state of its objects.
    pub health: &'a Health,
    /// The contents of the catalogues. With `None`, they were not read, and the conditions of the record count.
    pub offered: Option<&'a OfferedCatalogues<'a>>,
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
    pub assessed: usize,
    /// Set if they show that the record is older than the cluster, and so says nothing about them (semantics 13.10).
    pub older: Option<OutdatedRecord>,
    /// Set if their cluster was not read: no object was assessed then.
    pub unseen: Option<UnseenCluster>,
}

/// Why the cluster with the objects was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnseenCluster {
    /// The caller may not use its kubeconfig. What its reconciler recorded counts.
    NotAllowed,
    /// It cannot be reached, or not be used, for this reason: how its objects are is not known.
    Lost(String),
}

impl Health {
    /// Whether all objects that matter exist and are ready. An object that cannot be read does not count as ready.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let is_unwell = |one: &ObjectHealth| one.is_trouble() || one.is_unread();
        self.unseen.is_none() && self.older.is_none() && !self.objects.iter().any(is_unwell)
    }
}

/// The catalogues of a cluster as they are now. Conditions that a loop wrote about them may be out of date.
#[derive(Clone, Debug)]
pub struct OfferedCatalogues<'a> {
    /// The catalogues.
    pub catalogues: &'a [AddonCatalogue],
    /// Their entries.
    pub entries: Arc<Catalogue>,
}

/// Determines how an installation stands.
#[must_use]
pub fn assess_standing(record: &AddonInstallation, facts: &StandingFacts<'_>) -> Standing {
    if let Some(other) = facts.other {
        return StandingState::OtherCluster.because(other);
    }
    let status = record.status.as_ref();
    if let Some(operation) = status.and_then(|status| status.operation.as_ref()) {
        let verb = &operation.verb;
        return match interrupted::find_continuation(record, operation, facts.now) {
            Some(next) => StandingState::Interrupted.because(verb).continued_by(next),
            None => StandingState::Progressing.because(format!("{verb} by {}", operation.holder)),
        };
    }
    if let Some(older) = &facts.health.older {
        return StandingState::RecordOlderThanCluster.because(older);
    }
    let failed = FailedOperation::from_record(record);
    let standing = assess_idle(record, facts, failed.as_ref());
    match failed {
        Some(failed) => standing.continued_by(failed.next),
        None => standing,
    }
}

/// Like [`assess_standing`], for a record of this cluster without a running operation. `failed` is the last operation, if it failed.
fn assess_idle(
    record: &AddonInstallation,
    facts: &StandingFacts<'_>,
    failed: Option<&FailedOperation>,
) -> Standing {
    let status = record.status.as_ref();
    let phase = status.and_then(|status| status.phase);
    let health = facts.health;
    let mut troubles = health.objects.iter().filter(|object| object.is_trouble());
    if let Some(trouble) = troubles.next() {
        // A missing object that was never created does not explain the failure.
        let is_partial = health.objects.iter().any(|object| object.planned);
        let trouble = match failed.filter(|_| is_partial) {
            Some(failed) => failed.why.clone(),
            None => describe_trouble(trouble, troubles.count()),
        };
        return match failed::describe_failed_operation(status) {
            Some(operation) => StandingState::Failed.because(format!("{operation}: {trouble}")),
            None if phase == Some(InstallationPhase::Failed) => {
                StandingState::Failed.because(trouble)
            }
            None => StandingState::Degraded.because(trouble),
        };
    }
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let raised = |r#type: &str| conditions::find_raised(conditions, r#type).map(|it| &it.message);
    if record.metadata.deletion_timestamp.is_some() && phase != Some(InstallationPhase::Failed) {
        let blocked = raised(DELETION_BLOCKED).cloned();
        return StandingState::Uninstalling.because(blocked.unwrap_or_default());
    }
    if let Some(unreadable) = &record.spec.unreadable {
        return StandingState::Stalled.because(unreadable);
    }
    if record.spec.suspend {
        return StandingState::Suspended.into();
    }
    let misfit = |condition: &&Condition| {
        condition.r#type == conditions::COMPATIBLE && condition.status == "False"
    };
    if let Some(misfit) = conditions.iter().find(misfit) {
        return StandingState::Incompatible.because(&misfit.message);
    }
    let stalled = raised(STALLED).cloned();
    match phase {
        None | Some(InstallationPhase::Pending) => match stalled {
            Some(stalled) => StandingState::Pending.because(stalled),
            None => pending_standing(record, raised(WAITING).map_or("", String::as_str)),
        },
        Some(InstallationPhase::Failed) => {
            let why = stalled.or_else(|| failed::describe_failed_operation(status));
            StandingState::Failed.because(why.unwrap_or_default())
        }
        Some(InstallationPhase::Uninstalling) => StandingState::Uninstalling.into(),
        Some(InstallationPhase::Progressing) => StandingState::Progressing.into(),
        Some(InstallationPhase::Ready | InstallationPhase::Installed)
            if let Some(UnseenCluster::Lost(why)) = &health.unseen =>
        {
            StandingState::Unknown.because(describe_last_seen(conditions, why, facts.now))
        }
        Some(InstallationPhase::Ready | InstallationPhase::Installed) => {
            let lost = match facts.offered {
                Some(offered) => lost_standing(record, offered),
                None => raised(UNLISTED).map(|why| StandingState::Unlisted.because(why)),
            };
            let confirm =
                || raised(NEEDS_CONFIRMATION).map(|why| (StandingState::NeedsConfirmation, why));
            let contested = || raised(CONTESTED).map(|why| (StandingState::Contested, why));
            let stalled = || raised(STALLED).map(|why| (StandingState::Stalled, why));
            let noted = || confirm().or_else(contested).or_else(stalled);
            let changed = || {
                let is_changed = record.is_observed() == Some(false);
                let why = raised(WAITING).map_or(NOT_APPLIED, String::as_str);
                is_changed.then(|| pending_standing(record, why))
            };
            let waiting = || raised(WAITING).map(|until| StandingState::Waiting.because(until));
            let drifted = || raised(DRIFTED).map(|why| StandingState::Ready.because(why));
            lost.or_else(|| noted().map(|(word, why)| word.because(why)))
                .or_else(changed)
                .or_else(waiting)
                .or_else(|| unread_standing(health))
                .or_else(drifted)
                .unwrap_or_else(|| StandingState::Ready.into())
        }
    }
}

/// Returns the state of an installation whose spec has to be applied, by an upgrade to the version that it names.
fn pending_standing(record: &AddonInstallation, why: &str) -> Standing {
    let reference = &record.spec.addon_ref;
    let target = Installed {
        version: reference.version.clone().unwrap_or_default(),
        id: reference.id.clone().unwrap_or_default(),
        ..Installed::default()
    };
    let next = Continuation::from_record(record, &Verb::Upgrade.into(), Some(&target));
    StandingState::Pending.because(why).continued_by(next)
}

/// Returns the state of an installation with objects that this client cannot read, if all others are ready. Unreadable objects of kinds
/// that are ready once they exist are mentioned only if nothing can be read.
fn unread_standing(health: &Health) -> Option<Standing> {
    if health.unseen.is_some() {
        return Some(StandingState::Ready.because("as recorded"));
    }
    let unread: Vec<_> = health
        .objects
        .iter()
        .filter(|one| one.is_unread())
        .collect();
    let is_all = unread.len() >= health.assessed;
    let mut told = unread.into_iter().filter(|one| is_all || one.waited);
    let first = told.next()?;
    let word = if is_all {
        StandingState::Unknown
    } else {
        StandingState::Ready
    };
    Some(word.because(describe_trouble(first, told.count())))
}

/// Describes an installation whose cluster is lost: `Ready until 12m ago; the server at https://h cannot be reached`. The reconciler
/// records since when it cannot work on the cluster.
fn describe_last_seen(conditions: &[Condition], why: &str, now: Timestamp) -> String {
    let stalled = conditions::find_raised(conditions, STALLED);
    match stalled.filter(|it| LOST_CLUSTER.contains(&it.reason.as_str())) {
        Some(stalled) => {
            let since = age(stalled.last_transition_time.0, now);
            format!("Ready until {since} ago; {why}")
        }
        None => format!("Ready when last seen; {why}"),
    }
}

/// Returns the state of an installation whose catalogue, add-on or version no longer exists; `None` if they exist.
fn lost_standing(record: &AddonInstallation, offered: &OfferedCatalogues<'_>) -> Option<Standing> {
    if let Some(lost) = orphan::find_missing_origin(record, offered.catalogues) {
        return Some(StandingState::Orphaned.because(lost));
    }
    let unlisted = orphan::find_unlisted(record, &offered.entries)?;
    Some(StandingState::Unlisted.because(unlisted))
}

/// Describes the first object with a problem: `Deployment web 1/2 ready (ImagePullBackOff) and 2 more`.
fn describe_trouble(trouble: &ObjectHealth, more: usize) -> String {
    let more = and_more(more);
    let blocker = trouble.blocker.as_ref();
    let why = blocker.map_or_else(String::new, |blocker| format!(" ({})", blocker.reason));
    let (key, message) = (&trouble.key, trouble.message());
    format!("{} {} {message}{why}{more}", key.kind, key.name)
}

impl Standing {
    /// Whether the installation needs no attention.
    #[must_use]
    pub fn is_good(&self) -> bool {
        matches!(
            self.state,
            StandingState::Ready | StandingState::Suspended | StandingState::Waiting
        )
    }

    /// Adds how to continue the operation.
    fn continued_by(self, next: Continuation) -> Self {
        Self {
            continuation: Some(next),
            ..self
        }
    }
}

impl StandingState {
    /// Returns the standing with this state and a reason.
    #[must_use]
    pub fn because(self, why: impl fmt::Display) -> Standing {
        Standing {
            state: self,
            message: why.to_string(),
            continuation: None,
        }
    }
}

impl From<StandingState> for Standing {
    fn from(word: StandingState) -> Self {
        word.because("")
    }
}

impl fmt::Display for StandingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => write!(f, "{}", self.state),
            why => write!(f, "{}: {why}", self.state),
        }
    }
}

#[cfg(test)]
mod tests;
