//! Attempts of a loop that come to nothing because of how former ones ended (semantics 20).

use std::time::Duration;

use common::api::names::InstallationName;

use crate::elapsed::seconds;

/// Why an installation is not planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// Former attempts ended with their process.
    #[error(
        "{installation}: the reconciler was killed during {times} attempts to plan it, maybe for lack of memory, and does not plan \
         it again until its record changes"
    )]
    Killed {
        /// The installation.
        installation: InstallationName,
        /// How many.
        times: u32,
    },
    /// An attempt that nothing else is planned beside took too long.
    #[error(
        "{installation}: the reconciler was killed during an attempt to plan it, and the next attempt was stopped after {}",
        seconds(*bound)
    )]
    Slow {
        /// The installation.
        installation: InstallationName,
        /// How long it had.
        bound: Duration,
    },
}
