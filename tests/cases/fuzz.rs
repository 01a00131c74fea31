//! Bytes of strangers, changed at random: `cargo test -p addons-tests --test fuzz`, 1 s a target, and with `FULL=1` 10 s.
//!
//! Nothing may panic, overflow the stack or run away, and what each target says besides holds for whatever was read.

#[path = "fuzz/duplicates.rs"]
mod duplicates;
#[path = "fuzz/index.rs"]
mod index;
#[path = "fuzz/mutant.rs"]
mod mutant;
#[path = "fuzz/pem.rs"]
mod pem;
#[path = "fuzz/ranges.rs"]
mod ranges;
#[path = "fuzz/review.rs"]
mod review;
#[path = "fuzz/tar.rs"]
mod tar;
#[path = "fuzz/template.rs"]
mod template;
#[path = "fuzz/yaml.rs"]
mod yaml;
