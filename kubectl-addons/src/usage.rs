//! A mistake in how the program was called that clap cannot see: exit code 2.

/// One sentence that says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);
