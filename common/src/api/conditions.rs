//! Conditions of our objects, as kstatus reads them: Ready, Progressing, Stalled, Compatible, Drifted, Unlisted, NeedsConfirmation,
//! Waiting, Contested and ManagedElsewhere. Core installations also have CoreSetUnknown and DeletionBlocked; catalogues have Duplicate and
//! Synced.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::shorten;

/// The installation is installed and ready.
pub const READY: &str = "Ready";
/// An operation is in progress.
pub const PROGRESSING: &str = "Progressing";
/// The last operation failed, and the state will not change by itself.
pub const STALLED: &str = "Stalled";
/// The installed version fits this cluster.
pub const COMPATIBLE: &str = "Compatible";
/// The catalogue no longer lists the installed version, which stays installed.
pub const UNLISTED: &str = "Unlisted";
/// A protection refuses what is due, and a person has to confirm it.
pub const NEEDS_CONFIRMATION: &str = "NeedsConfirmation";
/// What is due begins when a maintenance window opens.
pub const WAITING: &str = "Waiting";
/// The reason of [`WAITING`], and of a change that is refused because no window is open.
pub const OUTSIDE_WINDOW: &str = "OutsideWindow";
/// Another field manager keeps changing a field that we set.
pub const CONTESTED: &str = "Contested";
/// Only a command that a person runs can read the source of the installation.
pub const MANAGED_ELSEWHERE: &str = "ManagedElsewhere";
/// Live objects were edited or deleted, and are not restored because of `reconcile: Once`.
pub const DRIFTED: &str = "Drifted";
/// On a core installation: the core set of its cluster is unknown, so nothing in the set changes.
pub const CORE_SET_UNKNOWN: &str = "CoreSetUnknown";
/// On a core installation that is being deleted but still listed: it is kept, and repaired as before.
pub const DELETION_BLOCKED: &str = "DeletionBlocked";
/// The reason of [`NEEDS_CONFIRMATION`] on a core installation that the loop does not release by itself, because the release affects
/// several clusters.
pub const CORE_RELEASE: &str = "CoreRelease";

/// On a catalogue: another one keeps some of its entries, because it is older or of class Core.
pub const DUPLICATE: &str = "Duplicate";

/// On a catalogue: its add-ons are those in `spec.from`.
pub const SYNCED: &str = "Synced";

/// The reason of a failed operation that applied all objects, one of which will not become ready by itself.
pub const ROLLOUT_FAILED: &str = "RolloutFailed";

/// The reason of an installation that is not planned again, because attempts to plan it were killed with their process.
pub const PROCESS_KILLED: &str = "ProcessKilled";

/// The reason of an operation in which an object did not become ready in time.
pub const TIMED_OUT: &str = "TimedOut";

/// The reason of installations in another cluster whose server does not respond.
pub const CLUSTER_UNREACHABLE: &str = "ClusterUnreachable";

/// The reason of installations in another cluster whose server refuses the credentials.
pub const CREDENTIALS_REFUSED: &str = "CredentialsRefused";

/// The reason of installations in another cluster whose kubeconfig does not exist.
pub const KUBECONFIG_MISSING: &str = "KubeconfigMissing";

/// The reason of installations in another cluster whose kubeconfig cannot be used.
pub const KUBECONFIG_REFUSED: &str = "KubeconfigRefused";

/// The reasons of installations in another cluster that cannot be worked on.
pub const LOST_CLUSTER: [&str; 4] = [
    CLUSTER_UNREACHABLE,
    CREDENTIALS_REFUSED,
    KUBECONFIG_MISSING,
    KUBECONFIG_REFUSED,
];

/// The maximum length of a condition's message, and of a line of the history, in characters.
pub const LONGEST_MESSAGE: usize = 1000;

/// A condition, in the shape of `metav1.Condition`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition, for example `Ready`.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason in one CamelCase word.
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
    /// When `status` last changed.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub last_transition_time: Time,
    /// Generation of the object for which the condition was determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Shortens a message to [`LONGEST_MESSAGE`], because a record holds several copies of it beside its inventory.
#[must_use]
pub fn shorten_message(message: String) -> String {
    shorten(message, LONGEST_MESSAGE)
}

/// Sets a condition. Keeps its transition time if the status did not change.
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

/// Returns the condition of this type if it is `True`.
#[must_use]
pub fn find_raised<'a>(conditions: &'a [Condition], r#type: &str) -> Option<&'a Condition> {
    let mut all = conditions.iter();
    all.find(|condition| condition.r#type == r#type && condition.status == "True")
}

/// Whether the release of a core installation waits for a person. It waits until a person releases it or the add-on is listed again:
/// otherwise, a release in several clusters would be carried out after all, one cluster at a time (semantics 14.6).
#[must_use]
pub fn waits_for_release(conditions: &[Condition]) -> bool {
    let raised = find_raised(conditions, NEEDS_CONFIRMATION);
    raised.is_some_and(|raised| raised.reason == CORE_RELEASE)
}
