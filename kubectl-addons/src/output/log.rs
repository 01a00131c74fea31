//! The log of a process that goes on: one JSON line for each event, as the webhook writes them; on a terminal, the same events as text.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};

use common::foreign::escape_controls;
use tracing::{error, info, warn};

use super::text;

/// Whether everything that is printed for people becomes a JSON line.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// What a line is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogLine<'a> {
    /// The level.
    pub level: LogLevel,
    /// Namespace and name of the installation.
    pub installation: Option<&'a str>,
    /// The outcome.
    pub outcome: Option<LogOutcome>,
    /// Who or what caused it.
    pub cause: Option<&'a str>,
    /// What happened.
    pub message: &'a str,
}

/// What became of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOutcome {
    /// It was changed as it is asked for.
    Changed,
    /// It could not be, or not completely.
    Failed,
    /// Its record is deleted, and its objects stay in another cluster.
    LetGo,
}

impl LogOutcome {
    fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Failed => "failed",
            Self::LetGo => "let-go",
        }
    }
}

/// The level of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// What happened.
    #[default]
    Info,
    /// A failure that the process goes on with.
    Warning,
    /// A failure that ends the process.
    Error,
}

/// Turns all notes of this process into JSON lines from now on, unless a person reads them on a terminal, or requests are printed.
pub fn start() {
    if !std::io::stderr().is_terminal() && !tracing::dispatcher::has_been_set() {
        addons_telemetry::log::start();
        IS_JSON.store(true, Ordering::Relaxed);
    }
}

/// Writes a line.
pub fn write_line(line: LogLine<'_>) {
    if !is_json() {
        let prefix = match line.level {
            LogLevel::Info => "",
            LogLevel::Warning => "warning: ",
            LogLevel::Error => "error: ",
        };
        let cause = line.cause.map(|cause| format!("; cause: {cause}"));
        let text = format!("{prefix}{}{}", line.message, cause.unwrap_or_default());
        return super::note(&text);
    }
    let message = join_lines(line.message);
    let LogLine {
        installation,
        cause,
        ..
    } = line;
    let outcome = line.outcome.map(LogOutcome::word);
    match line.level {
        LogLevel::Info => info!(installation, outcome, cause, "{message}"),
        LogLevel::Warning => warn!(installation, outcome, cause, "{message}"),
        LogLevel::Error => error!(installation, outcome, cause, "{message}"),
    }
}

/// Writes a note for people as a line. Returns whether that was done.
pub(super) fn write_note(note: &str) -> bool {
    if is_json() {
        let (level, message) = split_level(note);
        write_line(LogLine {
            level,
            message,
            ..LogLine::default()
        });
    }
    is_json()
}

fn is_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

/// Splits the level from the beginning of a note.
fn split_level(note: &str) -> (LogLevel, &str) {
    if let Some(message) = note.strip_prefix("warning: ") {
        (LogLevel::Warning, message)
    } else if let Some(message) = note.strip_prefix("error: ") {
        (LogLevel::Error, message)
    } else {
        (LogLevel::Info, note)
    }
}

/// Puts a message on one line, without what would change a terminal that shows the log.
fn join_lines(message: &str) -> String {
    let message = text::replace_causes(message);
    let lines = message.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    escape_controls(&lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_becomes_one_line_with_its_level() {
        for (note, level, message) in [
            ("web 1.0.0 upgraded\n", LogLevel::Info, "web 1.0.0 upgraded"),
            ("warning: it is gone", LogLevel::Warning, "it is gone"),
            (
                "error: it is gone\n       fix:    do it\n",
                LogLevel::Error,
                "it is gone; fix:    do it",
            ),
        ] {
            let found = split_level(note);
            assert_eq!((found.0, join_lines(found.1).as_str()), (level, message));
        }
    }
}
