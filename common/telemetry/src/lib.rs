//! The form of log lines and metrics, which the webhook and the loops share: whoever operates one of them can read the other.

pub mod log;
pub mod metrics;
