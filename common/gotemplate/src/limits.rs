//! Limits of rendering. They ensure that an untrusted template ends, if need be with an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum nesting of node lists, pipelines in parentheses and templates during execution.
pub(crate) const MAX_DEPTH: usize = 400;

/// The limits of one rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateLimits {
    /// Maximum size of the rendered text, in bytes.
    pub output: usize,
    /// Maximum number of executed nodes and commands.
    pub steps: usize,
    /// Maximum number of iterations of all loops together.
    pub iterations: usize,
    /// Maximum number of bytes that all functions together produce.
    pub bytes: usize,
    /// Maximum number of bytes that all functions together read: texts in arguments as often as they are read, compared values, and
    /// searched variables.
    pub work: usize,
}

/// Stops a rendering from another thread. All clones share one state.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Asks the rendering to end. It does so with an error, at its next step or regular expression match.
    pub fn request_stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the rendering was asked to end.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for TemplateLimits {
    /// 64 MiB of output, 10 million steps, 1 million iterations, 1 GiB made by functions, 4 GiB read.
    fn default() -> Self {
        Self {
            output: 64 << 20,
            steps: 10_000_000,
            iterations: 1_000_000,
            bytes: 1 << 30,
            work: 1 << 32,
        }
    }
}
