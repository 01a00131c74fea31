//! Conditions as kstatus reads them: Ready, Progressing, Stalled, Compatible, Drifted; and Unlisted, NeedsConfirmation, Contested and
//! ManagedElsewhere; of core installations CoreSetUnknown and DeletionBlocked. Of catalogues: Duplicate and Synced.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shorten::shortened;

/// Everything runs as wanted.
pub const READY: &str = "Ready";
/// An operation is under way.
pub const PROGRESSING: &str = "Progressing";
/// The last operation failed and nothing will change by itself.
pub const STALLED: &str = "Stalled";
/// The installed version fits this cluster.
pub const COMPATIBLE: &str = "Compatible";
/// The installed version was removed from its catalogue. It stays installed.
pub const UNLISTED: &str = "Unlisted";
/// What is due needs the agreement of a person: a protection refuses it.
pub const NEEDS_CONFIRMATION: &str = "NeedsConfirmation";
/// Another manager sets a field again and again that we set, too.
pub const CONTESTED: &str = "Contested";
/// Only a command of a person can read what it is installed from.
pub const MANAGED_ELSEWHERE: &str = "ManagedElsewhere";
/// Live objects differ from what was applied.
pub const DRIFTED: &str = "Drifted";
/// Of a core installation: the core set of its cluster is not known, so nothing of it changes.
pub const CORE_SET_UNKNOWN: &str = "CoreSetUnknown";
/// Of a core installation that is being deleted and still listed: it is held, and repaired as before.
pub const DELETION_BLOCKED: &str = "DeletionBlocked";
/// The reason of [`NEEDS_CONFIRMATION`] where the loop releases nothing by itself: the release concerns several clusters.
pub const CORE_RELEASE: &str = "CoreRelease";

/// Of a catalogue: an older one holds some of its entries, or one of class Core their names.
pub const DUPLICATE: &str = "Duplicate";

/// Of a catalogue: its add-ons are those that `spec.from` holds.
pub const SYNCED: &str = "Synced";

/// The reason of a failed operation whose objects were all applied, and one of which will not get ready by itself.
pub const ROLLOUT_FAILED: &str = "RolloutFailed";

/// The reason of an installation that is not planned again, because attempts to plan it ended with their process.
pub const PROCESS_KILLED: &str = "ProcessKilled";

/// The reason of an operation of which an object did not get ready in time.
pub const TIMED_OUT: &str = "TimedOut";

/// The longest message of a condition, and of a line of the history, in characters.
pub const LONGEST_MESSAGE: usize = 1000;

/// One condition, in the shape of `metav1.Condition`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition, for example `Ready`.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
    /// When `status` last changed.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub last_transition_time: Time,
    /// The generation of the object that this was judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Words as long as a message may be: a record has to hold it several times beside its inventory.
#[must_use]
pub fn bounded(message: String) -> String {
    shortened(message, LONGEST_MESSAGE)
}

/// Sets a condition and keeps its transition time where the status did not change.
pub fn set(conditions: &mut Vec<Condition>, mut new: Condition) {
    match conditions.iter_mut().find(|old| old.r#type == new.r#type) {
        Some(old) => {
            if old.status == new.status {
                new.last_transition_time = old.last_transition_time.clone();
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}

/// The condition of this type, where it is `True`.
#[must_use]
pub fn raised<'a>(conditions: &'a [Condition], r#type: &str) -> Option<&'a Condition> {
    let mut all = conditions.iter();
    all.find(|condition| condition.r#type == r#type && condition.status == "True")
}

/// Whether the release of a core installation waits for a person. Only that release ends it, or that the add-on is listed again:
/// otherwise what concerned several clusters would become the release of one by and by (semantics 14).
#[must_use]
pub fn waits_for_release(conditions: &[Condition]) -> bool {
    let raised = raised(conditions, NEEDS_CONFIRMATION);
    raised.is_some_and(|raised| raised.reason == CORE_RELEASE)
}
