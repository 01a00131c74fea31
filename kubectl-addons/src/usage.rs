//! A mistake in how the program was called that clap does not detect: exit code 2.

/// An error with one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);
