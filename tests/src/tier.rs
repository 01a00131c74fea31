//! The two tiers of tests: `cargo test` runs the first in minutes, `FULL=1 cargo test` runs everything.
//!
//! A test that belongs to the second tier alone is marked `#[cfg_attr(not(full), ignore = "FULL=1: why")]`, so that the test
//! runner counts it. A test that only tries more in the second tier asks [`full`].

/// Whether everything runs.
#[must_use]
pub const fn full() -> bool {
    cfg!(full)
}
