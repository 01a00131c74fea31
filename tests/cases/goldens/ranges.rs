//! `tests/golden/ranges`: every answer of the original libraries, no row left out.
#![expect(clippy::panic, reason = "a test whose input is broken has failed")]

use addons_tests::shared;
use addons_tests::tally::Tally;
use addons_versions::constraint::{self, Constraint};
use addons_versions::range::Range;
use addons_versions::tolerant;
use semver::Version;

/// Compares `answer(range, version)` with the third column of every row.
fn check(file: &str, tally: &mut Tally, answer: impl Fn(&str, &str) -> Option<bool>) {
    let mut wrong = Vec::new();
    for row in shared::rows(&format!("ranges/{file}")) {
        let [range, version, expect, ..] = &row[..] else {
            panic!("{file}: a row has three columns, not {row:?}");
        };
        let answer = answer(range, version).map_or("error".to_owned(), |fits| fits.to_string());
        if answer != *expect {
            wrong.push(format!("{range:?} on {version:?}: {answer}, not {expect}"));
        }
        tally.ran();
    }
    assert!(wrong.is_empty(), "{file}:\n{}", wrong.join("\n"));
}

#[test]
fn blang() {
    check(
        "blang.tsv",
        &mut Tally::new("ranges::blang"),
        |range, version| {
            let range = Range::parse(range).ok()?;
            Some(range.matches(&Version::parse(version).ok()?))
        },
    );
}

#[test]
fn kops() {
    check(
        "kops.tsv",
        &mut Tally::new("ranges::kops"),
        |range, version| {
            let version = tolerant::parse_kubernetes(version).ok()?;
            if range.is_empty() {
                return Some(true);
            }
            Some(Range::parse(range).ok()?.matches(&version))
        },
    );
}

#[test]
fn masterminds() {
    check(
        "masterminds.tsv",
        &mut Tally::new("ranges::masterminds"),
        |range, version| {
            let constraint = Constraint::parse(range).ok()?;
            Some(constraint.matches(&constraint::parse_version(version).ok()?))
        },
    );
}

#[test]
fn tolerant_versions() {
    let mut tally = Tally::new("ranges::tolerant_versions");
    for row in shared::rows("ranges/kops-tolerant-parse.tsv") {
        let [text, expect, ..] = &row[..] else {
            panic!("a row has two columns, not {row:?}");
        };
        let read = tolerant::parse(text).map_or("error".to_owned(), |version| version.to_string());
        assert_eq!(read, *expect, "{text:?}");
        tally.ran();
    }
}
