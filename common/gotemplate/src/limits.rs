//! Limits of rendering: an untrusted template always ends, with an error if need be.

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
    /// Bytes that functions read, all together: of texts in their arguments, and of values that they compare.
    pub work: usize,
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
