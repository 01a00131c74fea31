//! How laws run: on random inputs, counted; long matrices run whole with `FULL=1`.

use addons_tests::tally::Tally;
use addons_tests::tier::full;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// `few` cases, or `many` with `FULL=1`; what failed is told and not kept in a file.
pub fn cases(few: u32, many: u32) -> Config {
    Config {
        cases: if full() { many } else { few },
        failure_persistence: None,
        ..Config::default()
    }
}

/// Runs one law.
pub fn law<S: Strategy>(
    name: &'static str,
    config: Config,
    strategy: S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let mut tally = Tally::new(name);
    let cases = config.cases;
    let result = TestRunner::new(config).run(&strategy, test);
    assert!(
        result.is_ok(),
        "{}",
        result.map_or_else(|error| error.to_string(), |()| String::new())
    );
    (0..cases).for_each(|_| tally.ran());
}
