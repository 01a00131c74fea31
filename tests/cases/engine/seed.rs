//! Which of many cases run: all with `FULL=1`, else a few that `SEED` chooses.

use std::env;

/// The numbers 1 to `of`, or so many of them.
pub fn choose(of: usize, few: usize, salt: u64) -> Vec<usize> {
    if env::var_os("FULL").is_some() {
        return (1..=of).collect();
    }
    let seed = env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let mut state = seed.unwrap_or(1_u64).wrapping_add(salt << 32);
    // One out of each of `few` equal stretches: the beginning, the middle and the end are always there.
    (0..few.min(of))
        .map(|i| {
            let (from, to) = (i * of / few.min(of), (i + 1) * of / few.min(of));
            from + 1 + usize::try_from(next(&mut state)).unwrap_or(0) % (to - from)
        })
        .collect()
}

/// Whether the case with this number also runs the rarer way: both ways with `FULL=1`.
pub fn both<T: Copy>(one: T, other: T, number: usize) -> Vec<T> {
    match env::var_os("FULL") {
        Some(_) => vec![one, other],
        None if number.is_multiple_of(2) => vec![one],
        None => vec![other],
    }
}

/// splitmix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) >> 1
}
