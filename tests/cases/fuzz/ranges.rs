//! Ranges and constraints: rows of the goldens, changed at random. A row that is one of the goldens has its answer, whatever edits led
//! to it; every other one has an answer, and the same with blanks around it.

#![expect(clippy::unwrap_used, reason = "what a target finds ends it")]

use std::collections::HashMap;

use addons_tests::shared;
use addons_versions::constraint::{self, Constraint};
use addons_versions::range::Range;
use addons_versions::tolerant;
use semver::Version;

const TOKENS: &[&str] = &[
    ">=",
    "<=",
    "!=",
    "=>",
    "||",
    " || ",
    ",",
    " - ",
    "~",
    "^",
    "~>",
    "*",
    ".x",
    "-rc.1",
    "+a",
    "v",
    "1.30",
    "0",
    "18446744073709551616",
    "(",
    ")",
    " ",
    "\t",
];

fn masterminds(range: &str, version: &str) -> Option<bool> {
    let constraint = Constraint::parse(range).ok()?;
    Some(constraint.matches(&constraint::parse_version(version).ok()?))
}

fn blang(range: &str, version: &str) -> Option<bool> {
    let range = Range::parse(range).ok()?;
    Some(range.matches(&Version::parse(version).ok()?))
}

/// Range and version of a row, and the answer of the original.
fn goldens(file: &str) -> HashMap<(String, String), String> {
    let rows = shared::rows(&format!("ranges/{file}"));
    let rows = rows.into_iter().map(|row| {
        let [range, version, answer] = <[String; 3]>::try_from(row[..3].to_vec()).unwrap();
        ((range, version), answer)
    });
    rows.collect()
}

fn run(name: &'static str, file: &str, answer: fn(&str, &str) -> Option<bool>) {
    let goldens = goldens(file);
    let seeds = goldens.keys();
    let seeds = seeds.map(|(range, version)| format!("{range}\n{version}").into_bytes());
    super::mutant::run(name, seeds.collect(), TOKENS, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let (range, version) = text.rsplit_once('\n').unwrap_or((&text, ""));
        let found = answer(range, version);
        let golden = goldens.get(&(range.to_owned(), version.to_owned()));
        if let Some(golden) = golden {
            let found = found.map_or("error".to_owned(), |fits| fits.to_string());
            assert_eq!(found, *golden, "{range:?} on {version:?}");
        }
        let read = tolerant::parse(version);
        if let Ok(read) = &read {
            // What was read is read again as itself.
            let again = tolerant::parse(&read.to_string());
            assert_eq!(again.as_ref().ok(), Some(read), "{version:?}");
        }
        assert!(tolerant::is_same(version, version), "{version:?}");
        let _ = tolerant::parse_kubernetes(version);
    });
}

#[test]
fn ranges_of_masterminds() {
    run("fuzz::ranges masterminds", "masterminds.tsv", masterminds);
}

#[test]
fn ranges_of_blang() {
    run("fuzz::ranges blang", "blang.tsv", blang);
}
