//! Errors that prevent a plan.

use std::fmt;

use super::super::Verb;
use super::super::gitops::LiveReconciler;
use super::super::inventory::InventoryTooLarge;
use super::super::one_a_line;
use super::super::prune::Pruning;
use super::super::prune::limit::PruneLimit;
use super::super::restored::OutdatedRecord;
use super::super::snapshot::LiveObject;
use super::{PlanInput, WantedObjects};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;

/// Why no plan can be made. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Some objects cannot be applied.
    #[error("{}", one_a_line(objects))]
    Refused {
        /// All of these objects, sorted.
        objects: Vec<ObjectRefusal>,
    },
    /// The plan would prune more than the accepted share of the objects, or all of them (semantics 13.7).
    #[error(
        "{prune} of {there} objects would be pruned, and the limit is {limit}; the new version has {wanted}"
    )]
    MostlyPruned {
        /// The installation.
        installation: InstallationName,
        /// The operation.
        verb: Verb,
        /// The accepted share.
        limit: PruneLimit,
        /// The share that would allow the operation.
        needed: PruneLimit,
        /// The number of objects that would be pruned.
        prune: usize,
        /// The number of our objects that exist.
        there: usize,
        /// The number of desired objects.
        wanted: usize,
    },
    /// The record was restored from a backup, and the objects have changed since (semantics 13.10).
    #[error("{0}")]
    RecordOlder(Box<OutdatedRecord>),
    /// The inventory does not fit into the record.
    #[error(transparent)]
    TooLarge(#[from] InventoryTooLarge),
}

/// One object that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRefusal {
    /// The object.
    pub key: ObjectKey,
    /// Why it cannot be applied.
    pub reason: RefusalReason,
}

/// Why an object cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// It exists, and no installation owns it; the user can adopt it. Exit 4.
    Foreign {
        /// The owner that its labels or annotations name (e.g. a Helm release), if any.
        owner: Option<String>,
    },
    /// Another installation owns it. Exit 4.
    Claimed {
        /// The owner.
        by: String,
    },
    /// Its controller creates it, and would create it again. Exit 4.
    Controlled {
        /// Kind and name of the controller.
        by: String,
    },
    /// Argo CD or Flux reconciles it, and would take it back. Exit 4.
    Reconciled {
        /// The object of Argo CD or Flux that reconciles it.
        by: Box<LiveReconciler>,
    },
    /// It is being deleted, so anything applied to it would be lost.
    Terminating,
    /// It is a namespace that objects need, that does not exist and that the plan does not create.
    NoNamespace,
}

impl RefusalReason {
    /// The reason for an object that no installation owns and the user can adopt.
    pub(in super::super) fn unowned(live: &LiveObject) -> Self {
        Self::Foreign {
            owner: live.other_owner.clone(),
        }
    }

    /// The reason for an object of another installation.
    pub(in super::super) fn of_installation(other: &InstallationName) -> Self {
        Self::Claimed {
            by: format!("the installation {other}"),
        }
    }
}

impl fmt::Display for ObjectRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.reason {
            RefusalReason::Foreign { owner: Some(owner) } => {
                write!(f, "{key} belongs to {owner}")
            }
            RefusalReason::Foreign { owner: None } => {
                write!(f, "{key} exists, and no installation owns it")
            }
            RefusalReason::Claimed { by } => write!(
                f,
                "{key} belongs to {by}; remove it there, or take it out of this manifest"
            ),
            RefusalReason::Controlled { by } => write!(
                f,
                "{key} is made by its controller, {by}; take it out of the manifest"
            ),
            RefusalReason::Reconciled { by } => {
                write!(f, "{key} is applied by {by}, which would take it back")
            }
            RefusalReason::Terminating => write!(
                f,
                "{key} is being deleted; wait until it is gone (see its finalizers), then run this again"
            ),
            RefusalReason::NoNamespace => write!(
                f,
                "{key} does not exist and objects stand in it; create it, or set createNamespace for the target namespace"
            ),
        }
    }
}

/// Refuses to prune more than the accepted share of a set (semantics 13.7).
pub(super) fn check_share(
    input: &PlanInput<'_>,
    wanted: &WantedObjects<'_>,
    verb: Verb,
    pruning: &Pruning,
) -> Result<(), PlanError> {
    let (pruned, there) = (pruning.deletions.len(), pruning.there);
    let objects = &wanted.desired.objects;
    match wanted.allow_prune.needed(pruned, there, objects.is_empty()) {
        None => Ok(()),
        Some(needed) => Err(PlanError::MostlyPruned {
            installation: input.installation.clone(),
            verb,
            limit: wanted.allow_prune,
            needed,
            prune: pruned,
            there,
            wanted: objects.len(),
        }),
    }
}
