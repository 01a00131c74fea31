//! Events of a running operation.

use serde::Serialize;

use addons_plan::Action;
use addons_plan::changes::RefusalRemedy;
use addons_plan::readiness::Readiness;
use common::manifest::key::ObjectKey;
use common::values::mask::SecretMask;

use super::report::{Failure, Settled};

/// An event of a running operation. Events are sent in order; receivers only print them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "event")]
pub enum Event {
    /// The operation waits because another client holds the lock.
    WaitingForLock {
        /// The holder.
        holder: String,
    },
    /// A write succeeded.
    Applied {
        /// The object.
        key: ObjectKey,
        /// What was done.
        action: Action,
    },
    /// The readiness changed of an object that the operation waits for.
    Waiting {
        /// The object.
        key: ObjectKey,
        /// Its readiness.
        readiness: Readiness,
    },
    /// An object was deleted, or its deletion was accepted.
    Pruned {
        /// The object.
        key: ObjectKey,
    },
    /// A step succeeded with a warning, or an object was left.
    Warning {
        /// The object.
        key: ObjectKey,
        /// The server's message, or why the object stays.
        message: String,
    },
    /// The server refuses an apply, which is retried for a while. Shown early, because it may be that only the user can resolve it.
    Refused {
        /// The object.
        key: ObjectKey,
        /// The refusal.
        message: String,
        /// What the user can do about it.
        remedy: RefusalRemedy,
    },
    /// A conflict over a field of another manager was resolved.
    Settled(Settled),
    /// One object failed.
    Failed {
        /// The object.
        key: ObjectKey,
        /// The server's message, or the reason of its readiness.
        message: String,
        /// What the user can do about it.
        #[serde(skip_serializing_if = "Option::is_none")]
        remedy: Option<RefusalRemedy>,
    },
}

impl Event {
    /// Masks the content of Secrets in messages of servers and of helm.
    pub(super) fn masked(mut self, mask: &SecretMask) -> Self {
        match &mut self {
            Self::Waiting {
                readiness: Readiness { message, .. },
                ..
            }
            | Self::Warning { message, .. }
            | Self::Refused { message, .. }
            | Self::Failed { message, .. } => *message = mask.mask_text(message),
            Self::WaitingForLock { .. }
            | Self::Applied { .. }
            | Self::Pruned { .. }
            | Self::Settled(_) => {}
        }
        self
    }

    pub(super) fn failed(failure: &Failure, remedy: Option<RefusalRemedy>) -> Self {
        Self::Failed {
            key: failure.key.clone(),
            message: failure.message.clone(),
            remedy,
        }
    }
}
