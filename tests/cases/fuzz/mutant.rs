//! Inputs: a seed with some edits. Random bytes alone hardly get past the first line of any parser.

use std::panic::RefUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use addons_tests::tally::Tally;
use addons_tests::tier::full;

/// How long one target runs.
pub const TIME: Duration = Duration::from_secs(if full() { 10 } else { 1 });
/// Longest input: beyond it an edit that copies is left out.
const LONGEST: usize = 64 << 10;

/// What is done at a place: which edit, where, how much, and the byte or seed that it takes.
type Edit = (u8, u16, u8, u16);

/// Runs `target` on every seed and then on edited ones until the time is over. `tokens` are the words of the format.
pub fn run(
    name: &'static str,
    seeds: Vec<Vec<u8>>,
    tokens: &'static [&'static str],
    target: impl Fn(&[u8]) + RefUnwindSafe,
) {
    let mut tally = Tally::new(name);
    for seed in &seeds {
        target(seed);
        tally.ran();
    }
    let inputs = AtomicUsize::new(0);
    bolero::check!()
        .with_test_time(TIME)
        .with_type::<(u16, Vec<Edit>)>()
        .for_each(|(seed, edits)| {
            inputs.fetch_add(1, Ordering::Relaxed);
            target(&edited(&seeds, *seed, edits, tokens));
        });
    tally.note(format!("{} edited inputs", inputs.into_inner()));
}

fn edited(seeds: &[Vec<u8>], seed: u16, edits: &[Edit], tokens: &[&str]) -> Vec<u8> {
    let seed_of = |number: u16| seeds[usize::from(number) % seeds.len()].as_slice();
    let mut bytes = seed_of(seed).to_vec();
    for (edit, at, length, with) in edits {
        let at = usize::from(*at) % (bytes.len() + 1);
        let end = (at + usize::from(*length)).min(bytes.len());
        let [low, _] = with.to_le_bytes();
        match edit % 6 {
            0 => {
                bytes.splice(at..at, [low]);
            }
            1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = low;
                }
            }
            2 => {
                bytes.drain(at..end);
            }
            _ if bytes.len() > LONGEST => {}
            3 => {
                let copied = bytes[at..end].repeat(usize::from(low % 16));
                bytes.splice(end..end, copied);
            }
            4 => {
                let other = seed_of(*with);
                let from = at.min(other.len());
                let until = (from + usize::from(*length)).min(other.len());
                bytes.splice(at..at, other[from..until].iter().copied());
            }
            _ => {
                let token = tokens[usize::from(*with) % tokens.len()];
                bytes.splice(at..at, token.bytes());
            }
        }
    }
    bytes
}
