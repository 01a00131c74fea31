//! Data on stdout, all else on stderr (product.md 2). Nothing else in this crate prints.
//!
//! JSON and YAML of several things is one object `{"items": [...]}`; fields of items are added, never renamed or removed.

pub mod age;
pub mod table;

use std::io::{IsTerminal as _, Write};

use serde::Serialize;

use crate::cli::Format;
use crate::exit::Exit;

/// A list, as JSON and YAML show it.
#[derive(Debug, Serialize)]
pub struct Items<'a, T> {
    /// The items.
    pub items: &'a [T],
}

/// Prints data. A reader that went away (`| head`) ends the program quietly with 0.
pub fn data(text: &str) {
    let mut stdout = anstream::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if written.is_err() {
        std::process::exit(0);
    }
}

/// Prints a value as JSON or YAML; the caller handles the other formats.
///
/// # Errors
/// A value that cannot be serialised.
pub fn value<T: Serialize>(value: &T, format: Format) -> anyhow::Result<()> {
    let mut text = match format {
        Format::Yaml => serde_saphyr::to_string(value)?,
        _ => serde_json::to_string_pretty(value)?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    data(&text);
    Ok(())
}

/// Prints a note for people on stderr.
pub fn note(text: &str) {
    // A closed stderr is no reason to stop.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Prints a question on stderr and leaves the cursor behind it.
pub fn ask(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Prints an error with its chain, once, and tells its exit code.
pub fn failure(error: &anyhow::Error) -> Exit {
    let mut text = format!("error: {error}");
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // Some libraries repeat their source in their own words.
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    note(&text);
    Exit::of(error)
}

/// Whether stderr is a terminal that can move its cursor.
pub fn live() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}
