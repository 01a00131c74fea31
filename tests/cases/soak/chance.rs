//! What chance decides: the same for the same seed.

use addons_tests::chaos::seed::next;

/// A sequence of random numbers.
pub(super) struct Chance {
    pub(super) seed: u64,
    state: u64,
}

impl Chance {
    /// Of the variable `SEED`, or always the same.
    pub(super) fn new() -> Self {
        let seed = std::env::var("SEED").ok();
        let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
        Self { seed, state: seed }
    }

    /// A number below `of`, which is not 0.
    pub(super) fn below(&mut self, of: usize) -> usize {
        usize::try_from(next(&mut self.state)).unwrap_or(0) % of
    }

    /// Every one of them once, in a random order.
    pub(super) fn shuffled<T>(&mut self, mut all: Vec<T>) -> Vec<T> {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
        all
    }
}
