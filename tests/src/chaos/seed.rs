//! Which of many cases run: all with `FULL=1`, otherwise a few that `SEED` chooses.

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
    let seed = env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let salt = name.bytes().fold(0, |sum: u64, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    let mut state = seed.unwrap_or(1_u64).wrapping_add(salt << 32);
    // One out of each of `few` equal stretches: the beginning, the middle and the end are always there.
    (0..few.min(below))
        .map(|i| {
            let (from, to) = (i * below / few.min(below), (i + 1) * below / few.min(below));
            from + usize::try_from(next(&mut state)).unwrap_or(0) % (to - from)
        })
        .collect()
}

/// The next number of a sequence (splitmix64).
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) >> 1
}
