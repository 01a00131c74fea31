//! The lines at the bottom of a terminal that change while a command runs. Everything else is printed above them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use console::{Term, measure_text_width};

use super::style;

/// The lines that are on the screen.
static DRAWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenSize {
    /// The number of rows.
    pub height: usize,
    /// The number of columns.
    pub width: usize,
}

impl ScreenSize {
    /// Returns the current size of the terminal at stderr.
    pub fn current() -> Self {
        let (height, width) = Term::stderr().size();
        Self {
            height: usize::from(height),
            width: usize::from(width),
        }
    }
}

/// Replaces the lines at the bottom of the terminal. They must not be wider than the terminal. An empty list removes them, and leaves the
/// cursor at the beginning of the first one.
pub fn draw(lines: Vec<String>) {
    let mut drawn = drawn();
    if *drawn == lines {
        return;
    }
    let terminal = Term::buffered_stderr();
    erase(&terminal, &drawn);
    show(&terminal, &lines);
    *drawn = lines;
}

/// Prints something above these lines.
pub(super) fn print_above<T>(print: impl FnOnce() -> T) -> T {
    let drawn = drawn();
    if drawn.is_empty() {
        return print();
    }
    let terminal = Term::buffered_stderr();
    erase(&terminal, &drawn);
    // A closed stderr does not stop the program, here and below.
    let _ = terminal.flush();
    let printed = print();
    show(&terminal, &drawn);
    printed
}

fn drawn() -> MutexGuard<'static, Vec<String>> {
    DRAWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Erases lines. A terminal that became narrower since has wrapped them.
fn erase(terminal: &Term, lines: &[String]) {
    let width = ScreenSize::current().width.max(1);
    let rows = |line: &String| measure_text_width(line).div_ceil(width).max(1);
    let rows: usize = lines.iter().map(rows).sum();
    if rows > 0 {
        let _ = terminal.move_cursor_up(rows);
        let _ = terminal.clear_to_end_of_screen();
    }
}

fn show(terminal: &Term, lines: &[String]) {
    let has_colors = style::is_on_stderr();
    for line in lines {
        let _ = match has_colors {
            true => terminal.write_line(&style::paint(line)),
            false => terminal.write_line(line),
        };
    }
    let _ = terminal.flush();
}
