//! What happens while an operation runs.

use serde::Serialize;

use addons_plan::Action;
use addons_plan::changes::RefusalRemedy;
use addons_plan::readiness::Readiness;
use common::manifest::key::ObjectKey;
use common::values::mask::SecretMask;

use super::report::{Failure, Settled};

/// What happens, as it happens. Sent in order; a receiver only prints.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "event")]
pub enum Event {
    /// Another client holds the lock, which is waited for.
    WaitingForLock {
        /// Who.
        holder: String,
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
    /// Something that succeeded, or was left, with a warning.
    Warning {
        /// The object.
        key: ObjectKey,
        /// The server's message, or why a namespace stays.
        message: String,
    },
    /// An apply is refused, and tried again for a while: what refuses it may only be mended by the user.
    Refused {
        /// The object.
        key: ObjectKey,
        /// What refuses it.
        message: String,
        /// What the user can do about it.
        remedy: RefusalRemedy,
    },
    /// A field that another manager held was taken or left.
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
    /// The same without what comes from Secrets in messages of servers and of helm.
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
