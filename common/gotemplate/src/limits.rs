//! Limits of rendering: an untrusted template always ends, with an error if need be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How deep lists of nodes, pipelines in parentheses and templates may be nested during execution.
pub(crate) const MAX_DEPTH: usize = 400;

/// The limits of one rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the rendered text.
    pub output: usize,
    /// Nodes and commands that are executed.
    pub steps: usize,
    /// Iterations of all loops together.
    pub iterations: usize,
    /// Bytes that functions make, all together.
    pub bytes: usize,
    /// Bytes that functions read, all together: of texts in their arguments as often as they read them, of values that they
    /// compare, of the variables that are searched.
    pub work: usize,
}

/// Stops a rendering from another thread. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks the rendering to end: it does so with an error, at its next step or match.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Limits {
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
