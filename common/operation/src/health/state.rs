//! How an installation is, in a word and its reason: what `list`, `status` and the waves of a rollout say of it.

use std::fmt;
use std::sync::Arc;

use common::api::catalogue::AddonCatalogue;
use common::api::conditions::{self, CONTESTED, Condition, NEEDS_CONFIRMATION, STALLED, UNLISTED};
use common::api::installation::{AddonInstallation, Phase};
use common::catalogue::Catalogue;
use jiff::Timestamp;

use super::{Failed, Health, ObjectHealth, failed, interrupted};
use crate::context::{Context, Offer};
use crate::error::OperationError;
use crate::orphan;

/// How an installation is: `Degraded: Deployment web 1/2 ready`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// In one word.
    pub word: Word,
    /// Why; empty where there is nothing to say.
    pub message: String,
    /// The command that continues an operation that failed or was interrupted, as far as that is recorded.
    pub way_on: Option<String>,
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
    /// Nothing has been installed yet.
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

/// What the catalogues of a cluster offer now. What a loop noted of that may be out of date.
#[derive(Clone, Debug)]
pub struct Offered<'a> {
    /// The catalogues.
    pub catalogues: &'a [AddonCatalogue],
    /// Their entries.
    pub entries: Arc<Catalogue>,
}

impl<'a> Offered<'a> {
    /// Reads them; `None` where the caller may not.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses for another reason.
    pub async fn read(ctx: &'a Context) -> Result<Option<Self>, OperationError> {
        let Some(catalogues) = ctx.readable_catalogues().await? else {
            return Ok(None);
        };
        let entries = ctx.catalogue(&Offer::Catalogues).await?;
        Ok(Some(Self {
            catalogues,
            entries,
        }))
    }
}

/// Judges an installation. `offered`: `None` where the catalogues were not read; then what the record says of them counts. `now`: of
/// the cluster of the record.
pub fn state(
    record: &AddonInstallation,
    health: &Health,
    offered: Option<&Offered<'_>>,
    now: Timestamp,
) -> State {
    let status = record.status.as_ref();
    if let Some(operation) = status.and_then(|status| status.operation.as_ref()) {
        let verb = &operation.verb;
        return match interrupted::continued_by(record, operation, now) {
            Some(way_on) => Word::Interrupted.because(verb).continued_by(way_on),
            None => Word::Progressing.because(format!("{verb} by {}", operation.holder)),
        };
    }
    if let Some(older) = &health.older {
        return Word::RecordOlderThanCluster.because(older);
    }
    let failed = Failed::of(record);
    let state = judged(record, health, failed.as_ref(), offered);
    match failed {
        Some(failed) => state.continued_by(failed.way_on),
        None => state,
    }
}

/// As [`state`], where no operation is under way and the record is that of the cluster. `failed`: the last operation, where it did.
fn judged(
    record: &AddonInstallation,
    health: &Health,
    failed: Option<&Failed>,
    offered: Option<&Offered<'_>>,
) -> State {
    let status = record.status.as_ref();
    let phase = status.and_then(|status| status.phase);
    let objects = health.objects.iter();
    // What cannot be read is not broken.
    let mut troubles = objects.filter(|object| !object.is_current() && !object.is_unread());
    if let Some(trouble) = troubles.next() {
        // That an object does not exist yet is no reason.
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
    if record.spec.suspend {
        return Word::Suspended.into();
    }
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let misfit = |condition: &&Condition| {
        condition.r#type == conditions::COMPATIBLE && condition.status == "False"
    };
    if let Some(misfit) = conditions.iter().find(misfit) {
        return Word::Incompatible.because(&misfit.message);
    }
    let raised = |r#type: &str| conditions::raised(conditions, r#type).map(|it| &it.message);
    let stalled = raised(STALLED).cloned();
    match phase {
        None | Some(Phase::Pending) => Word::Pending.because(stalled.unwrap_or_default()),
        Some(Phase::Failed) => {
            let why = stalled.or_else(|| failed::operation(status));
            Word::Failed.because(why.unwrap_or_default())
        }
        Some(Phase::Uninstalling) => Word::Uninstalling.into(),
        Some(Phase::Progressing) => Word::Progressing.into(),
        Some(Phase::Ready | Phase::Installed) => {
            let lost = match offered {
                Some(offered) => lost(record, offered),
                None => raised(UNLISTED).map(|why| Word::Unlisted.because(why)),
            };
            let confirm = || raised(NEEDS_CONFIRMATION).map(|why| (Word::NeedsConfirmation, why));
            let contested = || raised(CONTESTED).map(|why| (Word::Contested, why));
            let stalled = || raised(STALLED).map(|why| (Word::Stalled, why));
            let noted = || confirm().or_else(contested).or_else(stalled);
            lost.or_else(|| noted().map(|(word, why)| word.because(why)))
                .or_else(|| unread(health))
                .unwrap_or_else(|| Word::Ready.into())
        }
    }
}

/// How an installation is of which some objects cannot be read by this client, and all others are ready.
fn unread(health: &Health) -> Option<State> {
    let mut unread = health.objects.iter().filter(|object| object.is_unread());
    let first = unread.next()?;
    let more = unread.count();
    let word = if more + 1 < health.judged {
        Word::Ready
    } else {
        Word::Unknown
    };
    Some(word.because(in_short(first, more)))
}

/// What is gone of the origin of an installation.
fn lost(record: &AddonInstallation, offered: &Offered<'_>) -> Option<State> {
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

impl State {
    /// Whether nothing needs to be done.
    pub fn is_good(&self) -> bool {
        matches!(self.word, Word::Ready | Word::Suspended)
    }

    /// The state, with the command that continues.
    fn continued_by(self, way_on: String) -> Self {
        Self {
            way_on: Some(way_on),
            ..self
        }
    }
}

impl Word {
    /// The word with its reason.
    pub fn because(self, why: impl fmt::Display) -> State {
        State {
            word: self,
            message: why.to_string(),
            way_on: None,
        }
    }
}

impl From<Word> for State {
    fn from(word: Word) -> Self {
        word.because("")
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => write!(f, "{}", self.word)?,
            why => write!(f, "{}: {why}", self.word)?,
        }
        match &self.way_on {
            Some(way_on) if self.word == Word::Interrupted => write!(f, "; to continue: {way_on}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use common::readiness::{Readiness, Status};
    use serde_json::{Value, json};

    use super::*;

    fn record(status: Value) -> AddonInstallation {
        let record = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"addonRef": {"name": "web", "catalogue": "team"}},
            "status": status,
        });
        serde_json::from_value(record).unwrap()
    }

    fn raised(r#type: &str) -> Value {
        json!([{"type": r#type, "status": "True", "reason": "Noted", "message": "as noted",
            "lastTransitionTime": "1970-01-01T00:00:00Z"}])
    }

    fn judged(status: Value, health: &Health, offered: Option<&Offered<'_>>) -> String {
        state(&record(status), health, offered, Timestamp::UNIX_EPOCH).to_string()
    }

    /// Of a Deployment that does not exist.
    fn gone() -> ObjectHealth {
        let key =
            json!({"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"});
        ObjectHealth {
            key: serde_json::from_value(key).unwrap(),
            readiness: None,
            planned: false,
            blocker: None,
            edited: false,
            release: None,
            yielded: Vec::new(),
        }
    }

    #[test]
    fn a_failed_operation_says_what_it_was_and_what_is_not_ready() {
        let ended =
            json!([{"verb": "upgrade", "installed": {"version": "1.2.0"}, "outcome": "timed out"}]);
        let failed = json!({"phase": "Failed", "history": ended});
        let broken = Health {
            objects: vec![gone(), gone()],
            ..Health::default()
        };
        let mut refused = failed.clone();
        refused["conditions"] = raised(STALLED);
        refused["conditions"][0]["message"] = json!("it is invalid");
        let uncreated = ObjectHealth {
            planned: true,
            ..gone()
        };
        let uncreated = Health {
            objects: vec![uncreated],
            ..Health::default()
        };
        let all_is_there = Health::default();
        for (status, health, expected) in [
            (
                json!({"phase": "Ready"}),
                &broken,
                "Degraded: Deployment web is gone and 1 more",
            ),
            (
                failed.clone(),
                &broken,
                "Failed: upgrade to 1.2.0: Deployment web is gone and 1 more",
            ),
            (
                json!({"phase": "Failed"}),
                &broken,
                "Failed: Deployment web is gone and 1 more",
            ),
            (
                refused.clone(),
                &broken,
                "Failed: upgrade to 1.2.0: Deployment web is gone and 1 more",
            ),
            (
                refused,
                &uncreated,
                "Failed: upgrade to 1.2.0: it is invalid",
            ),
            (
                failed.clone(),
                &uncreated,
                "Failed: upgrade to 1.2.0: Deployment web does not exist yet",
            ),
            (failed, &all_is_there, "Failed: upgrade to 1.2.0"),
            (json!({"phase": "Ready"}), &all_is_there, "Ready"),
            (json!({}), &all_is_there, "Pending"),
        ] {
            assert_eq!(judged(status.clone(), health, None), expected, "{status}");
        }
    }

    /// (objects that cannot be read, of how many, whether another one is gone)
    #[test]
    fn what_cannot_be_read_is_neither_broken_nor_ready() {
        let unread = || ObjectHealth {
            readiness: Some(Readiness {
                status: Status::Unknown,
                message: "cannot be read: not allowed".to_owned(),
            }),
            ..gone()
        };
        for (objects, judged_of, expected) in [
            (
                vec![unread()],
                2,
                "Ready: Deployment web cannot be read: not allowed",
            ),
            (
                vec![unread()],
                1,
                "Unknown: Deployment web cannot be read: not allowed",
            ),
            (
                vec![unread(), unread()],
                2,
                "Unknown: Deployment web cannot be read: not allowed and 1 more",
            ),
            (
                vec![unread(), gone()],
                2,
                "Degraded: Deployment web is gone",
            ),
        ] {
            let health = Health {
                objects,
                judged: judged_of,
                older: None,
            };
            assert_eq!(judged(json!({"phase": "Ready"}), &health, None), expected);
        }
    }

    #[test]
    fn what_the_catalogues_offer_now_outweighs_what_a_loop_noted() {
        let health = Health::default();
        let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": ""}}});
        let spec = json!({"addons": [{"name": "web", "versions": [version]}]});
        let team = [AddonCatalogue::new(
            "team",
            serde_json::from_value(spec).unwrap(),
        )];
        let here = Offered {
            catalogues: &team,
            entries: Arc::new(Catalogue::of_objects(&team)),
        };
        let nowhere = Offered {
            catalogues: &[],
            entries: Arc::default(),
        };
        let at = |version: &str, conditions: Value| json!({"phase": "Ready", "installed": {"version": version}, "conditions": conditions});
        let noted = raised(UNLISTED);
        for (status, offered, expected) in [
            (at("1.0.0", noted.clone()), None, "Unlisted: as noted"),
            (at("1.0.0", noted.clone()), Some(&here), "Ready"),
            (
                at("2.0.0", json!([])),
                Some(&here),
                "Unlisted: catalogue team no longer has web 2.0.0",
            ),
            (
                at("1.0.0", noted),
                Some(&nowhere),
                "Orphaned: catalogue team no longer exists",
            ),
            (
                at("1.0.0", raised(CONTESTED)),
                Some(&here),
                "Contested: as noted",
            ),
        ] {
            assert_eq!(
                judged(status.clone(), &health, offered),
                expected,
                "{status}"
            );
        }
    }
}
