//! Inputs: a seed with some edits. Random bytes alone hardly get past the first line of any parser.

use std::time::{Duration, Instant};

use addons_tests::tally::Tally;
use addons_tests::tier::full;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// How long one target runs.
const TIME: Duration = Duration::from_secs(if full() { 10 } else { 1 });
/// Inputs between two looks at the clock.
const BATCH: u32 = 64;
/// Most edits of one input.
const MAX_EDITS: usize = 64;
/// Longest input: beyond it an edit that copies is left out.
const LONGEST: usize = 64 << 10;

/// What is done at a place: which edit, where, how much, and the byte or seed that it takes. As one number, for a tuple takes four
/// times as long to draw.
type Edit = u64;

/// Runs `target` on every seed and then on edited ones for [`TIME`]. `tokens` are the words of the format.
pub fn run(
    name: &'static str,
    seeds: Vec<Vec<u8>>,
    tokens: &'static [&'static str],
    target: impl Fn(&[u8]),
) {
    let mut tally = Tally::new(name);
    for seed in &seeds {
        target(seed);
        tally.ran();
    }
    let inputs = (any::<u16>(), vec(any::<Edit>(), 0..=MAX_EDITS));
    let count = random(inputs, |(seed, edits)| {
        target(&edited(&seeds, seed, &edits, tokens));
    });
    tally.note(format!("{count} edited inputs"));
}

/// Runs `target` on random inputs for [`TIME`], and returns how many there were. An input that fails is printed, as small
/// as it could be made.
pub fn random<S: Strategy>(inputs: S, target: impl Fn(S::Value)) -> u32 {
    let end = Instant::now() + TIME;
    let config = Config {
        cases: BATCH,
        failure_persistence: None,
        ..Config::default()
    };
    let mut count = 0;
    while Instant::now() < end {
        let result = TestRunner::new(config.clone()).run(&inputs, |input| {
            target(input);
            Ok(())
        });
        assert!(
            result.is_ok(),
            "{}",
            result.map_or_else(|error| error.to_string(), |()| String::new())
        );
        count += BATCH;
    }
    count
}

fn edited(seeds: &[Vec<u8>], seed: u16, edits: &[Edit], tokens: &[&str]) -> Vec<u8> {
    let seed_of = |number: u16| seeds[usize::from(number) % seeds.len()].as_slice();
    let mut bytes = seed_of(seed).to_vec();
    for edit in edits {
        let [edit, at_low, at_high, length, low, high, ..] = edit.to_le_bytes();
        let (at, with) = ([at_low, at_high], u16::from_le_bytes([low, high]));
        let at = usize::from(u16::from_le_bytes(at)) % (bytes.len() + 1);
        let end = (at + usize::from(length)).min(bytes.len());
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
                let other = seed_of(with);
                let from = at.min(other.len());
                let until = (from + usize::from(length)).min(other.len());
                bytes.splice(at..at, other[from..until].iter().copied());
            }
            _ => {
                let token = tokens[usize::from(with) % tokens.len()];
                bytes.splice(at..at, token.bytes());
            }
        }
    }
    bytes
}
