//! What the tests, the demo and the benchmarks share.

pub mod shared;
pub mod tally;
