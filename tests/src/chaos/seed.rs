//! Which of many cases run: all with `FULL=1`, else a few that `SEED` chooses.

use std::env;

/// Whether everything runs.
pub fn is_full() -> bool {
    env::var_os("FULL").is_some()
}

/// All of them, or so many.
pub fn choose<T>(all: Vec<T>, few: usize, salt: u64) -> Vec<T> {
    if is_full() {
        return all;
    }
    let chosen = numbers(all.len(), few, salt);
    let chosen = all
        .into_iter()
        .enumerate()
        .filter(|(i, _)| chosen.contains(i));
    chosen.map(|(_, one)| one).collect()
}

/// So many of the numbers below `of`.
pub fn numbers(of: usize, few: usize, salt: u64) -> Vec<usize> {
    let seed = env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let mut state = seed.unwrap_or(1_u64).wrapping_add(salt << 32);
    // One out of each of `few` equal stretches: the beginning, the middle and the end are always there.
    (0..few.min(of))
        .map(|i| {
            let (from, to) = (i * of / few.min(of), (i + 1) * of / few.min(of));
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
