//! Why there is no plan.

use std::fmt;

use super::super::inventory::TooLarge;
use super::super::one_a_line;
use super::super::prune::limit::PruneLimit;
use crate::api::names::InstallationName;
use crate::manifest::key::ObjectKey;

/// Why there is no plan. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Objects that cannot be applied as things stand.
    #[error("{}", one_a_line(objects))]
    Refused {
        /// Every one of them, sorted.
        objects: Vec<Refusal>,
    },
    /// An empty set, or most of a larger one, would be pruned (semantics 13).
    #[error("{prune} of {there} objects would be pruned, and {wanted} are wanted")]
    MostlyPruned {
        /// The installation.
        installation: InstallationName,
        /// The share that would accept it.
        needed: PruneLimit,
        /// How many would be pruned.
        prune: usize,
        /// How many of our objects exist.
        there: usize,
        /// How many are wanted.
        wanted: usize,
    },
    /// The inventory does not fit into the record.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

/// One object that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// The object.
    pub key: ObjectKey,
    /// Why, and the way out.
    pub reason: RefusalReason,
}

/// Why an object cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// It exists and is not ours, or another installation has recorded it: exit 4.
    Foreign {
        /// Its owner, where its labels name one.
        owner: Option<String>,
    },
    /// It is being deleted: what is applied to it would vanish.
    Terminating,
    /// A namespace that objects stand in, that does not exist and is not created.
    NoNamespace,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.reason {
            RefusalReason::Foreign { owner: Some(owner) } => write!(
                f,
                "{key} belongs to {owner}; remove it there, or take it out of this manifest"
            ),
            RefusalReason::Foreign { owner: None } => write!(
                f,
                "{key} exists and is not ours; delete it, or take it out of the manifest"
            ),
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
