//! Does what a plan says: record, apply waves, wait, prune, record.

use std::time::Duration;

use serde::Serialize;

use crate::api::installation::AddonInstallation;
use crate::manifest::key::ObjectKey;
use crate::plan::{Action, Plan};
use crate::readiness::Readiness;

use super::cluster::Cluster;
use super::error::EngineError;

/// How an operation runs.
#[derive(Clone, Debug)]
pub struct ExecuteOptions {
    /// Who holds the lock, as others will read it: `user@host (kubectl-addons, pid 4711)`.
    pub holder: String,
    /// Whether readiness is waited for (CRDs that other objects need always are).
    pub wait: bool,
    /// Bound of the whole operation.
    pub timeout: Duration,
    /// Whether to wait for another holder (until `timeout`), or to fail with [`EngineError::Locked`] at once.
    pub wait_for_lock: bool,
    /// Take the lock over from a live holder.
    pub steal_lock: bool,
}

/// What happens, as it happens. Sent in order; a receiver only prints.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "event")]
pub enum Event {
    /// Somebody else holds the lock; we wait.
    WaitingForLock {
        /// Who.
        holder: String,
    },
    /// A wave begins.
    Wave {
        /// Its title.
        title: &'static str,
        /// How many steps it has.
        steps: usize,
    },
    /// A write succeeded.
    Applied {
        /// The object.
        key: ObjectKey,
        /// What was done.
        action: Action,
    },
    /// The readiness of an object that is waited for changed.
    Waiting {
        /// The object.
        key: ObjectKey,
        /// How it is.
        readiness: Readiness,
    },
    /// An object was deleted.
    Pruned {
        /// The object.
        key: ObjectKey,
    },
    /// One object failed.
    Failed {
        /// The object.
        key: ObjectKey,
        /// The server's words, or the reason of its readiness.
        message: String,
    },
}

/// What happened, with the same counts that the plan announced.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Objects that were created.
    pub created: Vec<ObjectKey>,
    /// Objects that were changed.
    pub changed: Vec<ObjectKey>,
    /// Objects that were deleted.
    pub pruned: Vec<ObjectKey>,
    /// Objects left in place on purpose.
    pub retained: Vec<ObjectKey>,
    /// Objects that were as wanted.
    pub unchanged: usize,
    /// Objects that failed, with the reason: exit 1.
    pub failed: Vec<(ObjectKey, String)>,
    /// Objects that were not tried because something they need failed.
    pub skipped: Vec<(ObjectKey, String)>,
    /// Objects that were not ready in time, with the reason: exit 3.
    pub not_ready: Vec<(ObjectKey, Readiness)>,
    /// How long it took.
    pub elapsed: Duration,
    /// The record as it was written last; `None` after an uninstallation.
    #[serde(skip)]
    pub record: Option<AddonInstallation>,
}

impl Report {
    /// Whether everything was done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty() && self.not_ready.is_empty()
    }
}

/// Runs `plan` for the installation `wanted`.
///
/// `wanted` is the record with the spec that the user wants: without resourceVersion it is created, with another spec
/// than the stored one it is replaced (both before the first write to other objects; the API server's admission may refuse
/// here: [`EngineError::Denied`]). Then lock and union inventory in one status write, waves, waits, prune, exact status.
/// For an uninstallation the record is deleted last.
///
/// # Errors
/// Errors before or in the record. What happens to single objects is told in the [`Report`].
pub async fn execute(
    cluster: &Cluster,
    wanted: &AddonInstallation,
    plan: &Plan,
    options: &ExecuteOptions,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Result<Report, EngineError> {
    let _ = (cluster, wanted, plan, options, events);
    todo!()
}
