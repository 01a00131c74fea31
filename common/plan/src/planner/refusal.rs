//! Why there is no plan.

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

/// Why there is no plan. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Objects that cannot be applied as things stand.
    #[error("{}", one_a_line(objects))]
    Refused {
        /// Every one of them, sorted.
        objects: Vec<ObjectRefusal>,
    },
    /// An empty set, or most of a larger one, would be pruned (semantics 13).
    #[error(
        "{prune} of {there} objects would be pruned, and the limit is {limit}; the new version has {wanted}"
    )]
    MostlyPruned {
        /// The installation.
        installation: InstallationName,
        /// What was to be done with it.
        verb: Verb,
        /// The share that is accepted.
        limit: PruneLimit,
        /// The share that would accept it.
        needed: PruneLimit,
        /// How many would be pruned.
        prune: usize,
        /// How many of our objects exist.
        there: usize,
        /// How many are wanted.
        wanted: usize,
    },
    /// The record was restored from a backup, and the objects have changed since (semantics 13).
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
    /// Why, and the way out.
    pub reason: RefusalReason,
}

/// Why an object cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// It exists, and no installation owns it: it can be adopted. Exit 4.
    Foreign {
        /// Its owner, where its labels name one.
        owner: Option<String>,
    },
    /// Another installation owns it: exit 4.
    Claimed {
        /// That one.
        by: String,
    },
    /// Its controller makes it, and would make it again: exit 4.
    Controlled {
        /// Kind and name of the controller.
        by: String,
    },
    /// Argo CD or Flux applies it again and again, and would take it back: exit 4.
    Reconciled {
        /// The object of Argo CD or Flux.
        by: Box<LiveReconciler>,
    },
    /// It is being deleted: what is applied to it would vanish.
    Terminating,
    /// A namespace that objects stand in, that does not exist and is not created.
    NoNamespace,
}

impl RefusalReason {
    /// Of an object that can be adopted.
    pub(in super::super) fn unowned(live: &LiveObject) -> Self {
        Self::Foreign {
            owner: live.other_owner.clone(),
        }
    }

    /// Of an object of another installation.
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

/// Refuses to prune more than the share of a set that is allowed (semantics 13).
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
