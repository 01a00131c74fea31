//! Which of many cases run: all with `FULL=1`, otherwise a few that `SEED` chooses. And what else chance decides.

use std::env;

use crate::tier::full;

/// All cases with `FULL=1`, otherwise `few` of them. Matrices with different names choose differently.
pub fn choose<T>(all: Vec<T>, few: usize, name: &str) -> Vec<T> {
    if full() {
        return all;
    }
    let chosen = numbers(all.len(), few, name);
    let chosen = all
        .into_iter()
        .enumerate()
        .filter(|(i, _)| chosen.contains(i));
    chosen.map(|(_, one)| one).collect()
}

/// `few` of the numbers below `below`.
pub fn numbers(below: usize, few: usize, name: &str) -> Vec<usize> {
    let salt = name.bytes().fold(0, |sum: u64, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    let mut state = seed().wrapping_add(salt << 32);
    // One out of each of `few` equal stretches: the beginning, the middle and the end are always there.
    (0..few.min(below))
        .map(|i| {
            let (from, to) = (i * below / few.min(below), (i + 1) * below / few.min(below));
            from + usize::try_from(next(&mut state)).unwrap_or(0) % (to - from)
        })
        .collect()
}

/// The variable `SEED`; without one, always the same.
pub fn seed() -> u64 {
    let seed = env::var("SEED").ok();
    seed.and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// A sequence of random numbers: the same for the same seed.
pub struct Chance {
    /// The seed.
    pub seed: u64,
    state: u64,
}

impl Chance {
    /// That of the variable `SEED`.
    #[must_use]
    pub fn new() -> Self {
        Self::of(seed())
    }

    /// That of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// A number below `of`, which is not 0.
    pub fn below(&mut self, of: usize) -> usize {
        usize::try_from(next(&mut self.state)).unwrap_or(0) % of
    }

    /// One of several, which are not none.
    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Every one of them once, in a random order.
    pub fn shuffled<T>(&mut self, mut all: Vec<T>) -> Vec<T> {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
        all
    }
}

impl Default for Chance {
    fn default() -> Self {
        Self::new()
    }
}

/// The next number of a sequence (splitmix64).
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) >> 1
}
