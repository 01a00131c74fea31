//! Prints data on stdout and everything else on stderr. No other module of this crate prints.
//!
//! Several values are printed in JSON and YAML as one object `{"items": [...]}`. Fields of items are added, never renamed or removed.

mod held;
pub mod html;
mod kyaml;
pub mod live;
pub mod log;
pub mod markdown;
pub mod of_cluster;
pub mod requests;
pub mod style;
pub mod table;
pub mod template;
pub mod text;

use std::io::{ErrorKind, IsTerminal as _, Write};

use common::causes::with_causes;
use common::foreign::escape_controls;
use serde::Serialize;

use crate::cli::{Listing, OutputFormat, ValueFormat};
use crate::exit::{self, Exit};
use crate::refusal::AnnouncedRefusal;
use crate::words::{ending, typed};

pub use text::{escape_text, pad_text};

/// A list as it is printed in JSON and YAML.
#[derive(Debug, Serialize)]
pub struct ItemList<'a, T> {
    /// The items.
    pub items: &'a [T],
}

/// Prints text for people, without control characters that would affect a terminal. If the reader closed the pipe (`| head`), the program
/// ends quietly with 0. A full disk ends it with 1.
pub fn print_text(text: &str) {
    print_held();
    write(prepare_text(text).as_bytes());
}

/// Prints text like [`print_text`], with colours.
pub fn print_painted(text: &str) {
    print_held();
    write(style::paint(&prepare_text(text)).as_bytes());
}

fn prepare_text(text: &str) -> String {
    let place = of_cluster::current_place();
    escape_text(&typed::complete_commands(text, place.as_deref()))
}

/// Prints data for programs, unchanged unless stdout is a terminal. See [`print_text`].
pub fn print_bytes(bytes: &[u8]) {
    if std::io::stdout().is_terminal() {
        print_text(&String::from_utf8_lossy(bytes));
    } else {
        write(bytes);
    }
}

/// Prints JSON in one line for programs. Returns `false` if that failed: a reader that went away does not end the operation. Control
/// characters are escaped, which leaves the JSON equal.
pub fn print_json_line(json: &str) -> bool {
    live::print_above(|| {
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{}", escape_controls(json))
            .and_then(|()| stdout.flush())
            .is_ok()
    })
}

fn write(bytes: &[u8]) {
    let written = live::print_above(|| {
        let mut stdout = anstream::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush())
    });
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit::exit(Exit::Done),
        Err(error) => {
            note(&format!("error: cannot write to stdout: {error}"));
            exit::exit(Exit::Failed);
        }
    }
}

/// Prints `KIND/NAME`, one a line, for `-o name`.
pub fn print_names<'a>(kind: &str, names: impl Iterator<Item = &'a str>) {
    let lines: String = names.map(|name| format!("{kind}/{name}\n")).collect();
    print_text(&lines);
}

/// Prints a value as JSON, as YAML or through a template. The caller handles the other formats.
///
/// # Errors
/// The value cannot be serialised, or the template does not fit it.
pub fn print_value<T: Serialize>(value: &T, asked: impl Into<Listing>) -> anyhow::Result<()> {
    let asked = asked.into();
    let mut text = match asked.format {
        OutputFormat::Value(ValueFormat::Template(template)) => {
            let value = serde_json::to_value(value)?;
            let text = template
                .render(&value, asked.no_headers)
                .map_err(anyhow::Error::msg)?;
            print_bytes(text.as_bytes());
            return Ok(());
        }
        OutputFormat::Value(ValueFormat::Yaml) => serde_saphyr::to_string(value)?,
        OutputFormat::Value(ValueFormat::Kyaml) => kyaml::render(&serde_json::to_value(value)?),
        _ => serde_json::to_string_pretty(value)?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    print_bytes(text.as_bytes());
    Ok(())
}

/// Prints a note for people on stderr; in a process that logs, as a line of the log.
pub fn note(text: &str) {
    print_held();
    print_note(text);
}

/// Warns about an add-on. Add-ons with the same text share a line, so it is printed before the next text or by [`print_held`].
pub fn warn_of_addon(addon: &str, text: &str) {
    let label = of_cluster::label_lines("-");
    held::hold(label.trim_end_matches('-').to_owned(), addon, text);
}

/// Prints the warnings about add-ons that are held.
pub fn print_held() {
    for line in held::take_lines() {
        if !log::write_note(&line) {
            print_labelled(&style::paint(&prepare_text(&line)));
        }
    }
}

fn print_note(text: &str) {
    if log::write_note(text) {
        return;
    }
    let text = style::paint(&prepare_text(&text::replace_causes(text)));
    print_labelled(&of_cluster::label_lines(&text));
}

fn print_labelled(text: &str) {
    // A closed stderr does not stop the program.
    let _ = live::print_above(|| writeln!(anstream::stderr().lock(), "{text}"));
}

/// Prints a question on stderr and leaves the cursor behind it.
pub fn ask(text: &str) {
    print_held();
    let mut stderr = anstream::stderr().lock();
    let _ = stderr
        .write_all(escape_text(text).as_bytes())
        .and_then(|()| stderr.flush());
}

/// Whether a user can be asked: stdin and stderr are terminals, and the running work is not about one of several clusters.
pub fn can_ask() -> bool {
    !of_cluster::is_one_of_several()
        && std::io::stdin().is_terminal()
        && std::io::stderr().is_terminal()
}

/// Prints a warning on stderr.
pub fn warn(text: &str) {
    note(&format!("warning: {text}"));
}

/// Formats `WHAT: CAUSE: CAUSE`, with the flag that overrides a protection.
pub fn describe_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let announced = error.downcast_ref::<AnnouncedRefusal>();
    let error = announced.map_or(error, AnnouncedRefusal::whole);
    let text = with_causes(error) + ending::sentence_end(error);
    text::replace_causes(&text)
}

/// Prints a message of clap. Help and version are data; mistakes end with 2.
pub fn print_usage(error: &clap::Error) -> Exit {
    if error.use_stderr() {
        let text = error.render().to_string();
        // A closed stderr does not change the exit code.
        let _ = write!(anstream::stderr().lock(), "{}", style::paint(&text));
        Exit::Usage
    } else {
        // A closed stdout does not change it either.
        let _ = error.print();
        Exit::Done
    }
}

/// The columns of the terminal that shows stdout; `None` if it is not a terminal.
fn terminal_width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(usize::from(columns))
}

/// Whether stdout is a terminal, so that people read it as it is printed.
pub fn is_read_live() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether stderr is a terminal that can move its cursor, and no work on another cluster prints on it.
pub fn can_move_cursor() -> bool {
    !of_cluster::is_one_of_several()
        && std::io::stderr().is_terminal()
        && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    #[test]
    fn yaml_quotes_what_kubernetes_would_read_as_something_else() {
        for text in [
            "yes", "on", "y", "No", "null", "~", "1_000", "0644", "1.30", "1e3", "0x1f", "", "- a",
            "a: b", "#",
        ] {
            let yaml = serde_saphyr::to_string(&serde_json::json!({ "value": text })).unwrap();
            let read = common::manifest::yaml::documents(yaml.as_bytes(), &Default::default());
            let value = read.into_iter().next().unwrap().unwrap().value;
            assert_eq!(value["value"], text, "{yaml}");
        }
    }
}
