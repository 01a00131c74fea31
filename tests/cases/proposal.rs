//! What the proposal asks for, row by row, and the tests that show it: `data/proposal.yaml`.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

const ROWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/proposal.yaml");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    says: String,
    #[serde(default)]
    tests: Vec<String>,
    /// Why it has none.
    because: Option<String>,
}

/// Whether it is a function that the test runner runs, or a snapshot of the terminal.
fn is_test(named: &str) -> Result<bool> {
    let Some((file, function)) = named.split_once("::") else {
        return Ok(named.starts_with("tests/cases/cli/") && Path::new(ROOT).join(named).is_file());
    };
    let text = std::fs::read_to_string(Path::new(ROOT).join(file)).context(named.to_owned())?;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_function = |line: &str| {
        let rest = line
            .trim_start_matches("async ")
            .strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(function));
        rest.is_some_and(|rest| rest.starts_with("()"))
    };
    let Some(at) = lines.iter().position(|line| is_function(line)) else {
        return Ok(false);
    };
    let before = lines[..at].iter().rev();
    // An attribute may be several lines long.
    let mut attributes = before.take_while(|line| !line.is_empty() && **line != "}");
    Ok(attributes.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test")))
}

#[test]
fn every_row_has_its_tests_or_a_reason() -> Result<()> {
    let rows: Vec<Row> = serde_saphyr::from_str(&std::fs::read_to_string(ROWS)?)?;
    ensure!(rows.len() >= 40, "{} rows are not all", rows.len());
    for row in &rows {
        let has_reason = row.because.as_ref().is_some_and(|why| !why.is_empty());
        ensure!(
            row.tests.is_empty() == has_reason,
            "{}: either tests or a reason",
            row.says
        );
        for named in &row.tests {
            ensure!(is_test(named)?, "{}: {named} is not a test", row.says);
        }
    }
    Ok(())
}

#[test]
fn what_is_no_test_is_noticed() -> Result<()> {
    let this = "tests/cases/proposal.rs";
    ensure!(is_test(&format!("{this}::what_is_no_test_is_noticed"))?);
    for other in ["is_test", "what_is", "gone"] {
        ensure!(!is_test(&format!("{this}::{other}"))?, "{other}");
    }
    ensure!(is_test("tests/cases/cli/search.txt")?);
    ensure!(!is_test("tests/cases/cli/gone.txt")?);
    Ok(())
}
