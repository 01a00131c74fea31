//! The corpus beside the checkout: other people's data, read where it lies and never copied.

use std::path::PathBuf;

/// `../shared/PATH` beside the checkout; `None` where it is not there.
#[must_use]
pub fn path(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")).join(path);
    path.exists().then_some(path)
}

/// A file or folder of `tests/golden`, which is part of the project.
#[must_use]
pub fn golden(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/golden")).join(path)
}

/// The rows of a table `tests/golden/FILE` whose columns are separated by tabs: without its comments, escapes resolved.
///
/// # Panics
/// Where the file is missing or an escape is unknown.
#[must_use]
#[expect(clippy::panic, reason = "a test without its table has failed")]
pub fn rows(file: &str) -> Vec<Vec<String>> {
    let path = golden(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| row.split('\t').map(unescape).collect())
        .collect()
}

/// `\t`, `\n`, `\r` and `\\`, the escapes of the tables.
#[expect(clippy::panic, reason = "a test with a broken table has failed")]
fn unescape(column: &str) -> String {
    let mut text = String::new();
    let mut chars = column.chars();
    while let Some(c) = chars.next() {
        text.push(match c {
            '\\' => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('\\') => '\\',
                other => panic!("unknown escape {other:?} in {column:?}"),
            },
            c => c,
        });
    }
    text
}
