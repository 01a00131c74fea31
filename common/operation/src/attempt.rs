//! Errors for attempts to plan that the loop does not repeat (semantics 20.6).

use std::time::Duration;

use common::api::names::InstallationName;

use crate::text::seconds;

/// Why an installation is not planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// The process was killed during former attempts.
    #[error(
        "{installation}: the reconciler was killed during {times} attempts to plan it, maybe for lack of memory, and does not plan \
         it again until its record changes"
    )]
    Killed {
        /// The installation.
        installation: InstallationName,
        /// The number of attempts.
        times: u32,
    },
    /// An attempt that ran alone took too long.
    #[error(
        "{installation}: the reconciler was killed during an attempt to plan it, and the next attempt was stopped after {}",
        seconds(*bound)
    )]
    Slow {
        /// The installation.
        installation: InstallationName,
        /// The time limit of the attempt.
        bound: Duration,
    },
}
