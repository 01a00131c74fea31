//! What became of an operation, object by object.

use std::time::Duration;

use serde::Serialize;

use addons_plan::conflicts::Conflict;
use addons_plan::readiness::Readiness;
pub use addons_plan::refusal::FailureCause;
use common::api::installation::{AddonInstallation, HelmRecord};
use common::manifest::key::ObjectKey;
use common::values::mask::SecretMask;

use super::error::EngineError;

/// The result, with the same counts that the plan announced.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Objects that were created.
    pub created: Vec<ObjectKey>,
    /// Objects that no installation owned, and that were adopted and applied.
    pub adopted: Vec<ObjectKey>,
    /// Objects that were changed.
    pub changed: Vec<ObjectKey>,
    /// Objects that were deleted and created again, because fields of them never change.
    pub recreated: Vec<ObjectKey>,
    /// Fields that other managers held.
    pub settled: Vec<Settled>,
    /// How many objects were written again, because their definition drops the version that they were stored in.
    pub migrated: usize,
    /// Objects that were deleted.
    pub pruned: Vec<ObjectKey>,
    /// The records of the release that helm worked on, where it did.
    #[serde(skip)]
    pub helm_records: Option<Vec<HelmRecord>>,
    /// Objects left in place on purpose.
    pub retained: Vec<ObjectKey>,
    /// Objects that were up to date.
    pub unchanged: usize,
    /// Objects that failed: exit 6, 4 or 1, by [`Failure::cause`].
    pub failed: Vec<Failure>,
    /// Objects that were not tried because something they need failed.
    pub skipped: Vec<(ObjectKey, String)>,
    /// Objects that were not ready in time, with the reason: exit 3.
    pub not_ready: Vec<(ObjectKey, Readiness)>,
    /// Whether everything was as wanted already, so that not even the record was written.
    #[serde(skip)]
    pub is_unwritten: bool,
    /// Whether objects that only changed their owner are not ready: that is not waited for.
    #[serde(skip)]
    pub is_unready: bool,
    /// Whether nothing was applied, and the spec of the record is again what it was.
    pub spec_restored: bool,
    /// What became of the way back, where the operation failed and was to go back by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back: Option<Back>,
    /// How long it took.
    pub elapsed: Duration,
    /// The record as it was written last; `None` after an uninstallation.
    #[serde(skip)]
    pub record: Option<AddonInstallation>,
}

/// What became of the way back of an operation that failed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Back {
    /// It was gone, as far as its own report says.
    Executed(Box<Report>),
    /// Nothing of it was done: why.
    Impossible(String),
}

/// A field that another manager held, and how the conflict was resolved (semantics 12).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settled {
    /// The object.
    pub key: ObjectKey,
    /// The field, its manager, and both values.
    #[serde(flatten)]
    pub conflict: Conflict,
    /// How it was resolved.
    #[serde(flatten)]
    pub settlement: Settlement,
}

/// How a conflict about a field was resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "settlement")]
pub enum Settlement {
    /// It has our value.
    Taken,
    /// The other manager keeps it.
    Left {
        /// Who sets the replicas: `HorizontalPodAutoscaler web`.
        #[serde(skip_serializing_if = "Option::is_none")]
        autoscaler: Option<String>,
    },
    /// It keeps its live value, whatever the policy says.
    Kept {
        /// Why.
        why: String,
    },
}

impl Back {
    /// How long it took.
    pub(super) fn elapsed(&self) -> Duration {
        match self {
            Self::Executed(report) => report.elapsed,
            Self::Impossible(_) => Duration::ZERO,
        }
    }
}

impl Settled {
    /// Whether the other manager keeps the field by the policy of the installation: it is drift. What an autoscaler sets is not.
    #[must_use]
    pub fn is_yielded(&self) -> bool {
        matches!(self.settlement, Settlement::Left { autoscaler: None })
    }

    /// Whether the other manager keeps the field.
    #[must_use]
    pub fn is_left(&self) -> bool {
        matches!(
            self.settlement,
            Settlement::Left { .. } | Settlement::Kept { .. }
        )
    }
}

/// The fields that other managers keep by policy.
pub(super) fn yielded(settled: &[Settled]) -> Vec<String> {
    let yielded = settled.iter().filter(|settled| settled.is_yielded());
    yielded
        .map(|settled| settled.conflict.field.clone())
        .collect()
}

/// One object that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The object.
    pub key: ObjectKey,
    /// The server's message, or the reason of its readiness.
    pub message: String,
    /// The same for the record of the installation, without values of fields.
    #[serde(skip)]
    pub recorded: String,
    /// The category of the failure.
    pub cause: FailureCause,
    /// What became of the object.
    #[serde(skip)]
    pub fate: Fate,
}

/// What became of an object that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The server refused it: nothing of it was written.
    Refused,
    /// Something of it may have been written.
    Uncertain,
    /// It was applied, and will not get ready by itself.
    Applied,
}

impl Failure {
    /// A refusal of the server.
    pub(super) fn of(key: ObjectKey, error: &EngineError) -> Self {
        Self {
            key,
            message: error.describe(),
            recorded: error.describe_for_record(),
            fate: if error.is_uncertain() {
                Fate::Uncertain
            } else {
                Fate::Refused
            },
            cause: error.cause(),
        }
    }

    /// An object that will not get ready by itself.
    pub(super) fn of_readiness(key: ObjectKey, readiness: Readiness) -> Self {
        Self {
            key,
            recorded: readiness.message.clone(),
            message: readiness.message,
            cause: FailureCause::Other,
            fate: Fate::Applied,
        }
    }
}

impl Report {
    /// Whether everything was done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty() && self.not_ready.is_empty()
    }

    /// Whether the operation failed and the server refused all of it: no object is another than before.
    pub(super) fn is_refused(&self) -> bool {
        let changed = [
            &self.created,
            &self.adopted,
            &self.changed,
            &self.recreated,
            &self.pruned,
        ];
        !self.is_done()
            && changed.iter().all(|keys| keys.is_empty())
            && self.not_ready.is_empty()
            && self
                .failed
                .iter()
                .all(|failure| failure.fate == Fate::Refused)
    }

    /// The same without what comes from Secrets in messages of servers and of helm. Conflicts and our own words name no values.
    pub(super) fn masked(mut self, mask: &SecretMask) -> Self {
        for failure in &mut self.failed {
            failure.message = mask.mask_text(&failure.message);
            failure.recorded = mask.mask_text(&failure.recorded);
        }
        for (_, readiness) in &mut self.not_ready {
            readiness.message = mask.mask_text(&readiness.message);
        }
        self
    }

    /// Takes over what a wait returned: objects that have failed are failures, the others were not ready in time.
    pub(super) fn take_pending(&mut self, pending: Vec<(ObjectKey, Readiness)>) {
        for (key, readiness) in pending {
            if readiness.status.is_hopeless() {
                self.failed.push(Failure::of_readiness(key, readiness));
            } else {
                self.not_ready.push((key, readiness));
            }
        }
    }
}
