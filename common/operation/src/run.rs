//! Options for executing a plan.

use std::time::Duration;

/// Options for executing a plan.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Whether to wait for readiness.
    pub wait: bool,
    /// The time limit of the whole command.
    pub timeout: Duration,
    /// Whether to wait for another holder of a lock, or to fail at once.
    pub wait_for_lock: bool,
    /// Whether to take over a lock from a live holder.
    pub steal_lock: bool,
    /// Whether to install our definitions if they are missing; otherwise this is an error.
    pub define: bool,
}

impl Default for RunOptions {
    /// Waits for at most 5 minutes, and installs the definitions.
    fn default() -> Self {
        Self {
            wait: true,
            timeout: Duration::from_secs(300),
            wait_for_lock: true,
            steal_lock: false,
            define: true,
        }
    }
}
