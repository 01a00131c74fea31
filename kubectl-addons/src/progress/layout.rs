//! How lines of progress fit a terminal: a reason is never cut, but gets lines of its own.

use std::time::Duration;

use addons_operation::text::seconds;
use console::measure_text_width;

use crate::output::escape_text;
use crate::output::live::ScreenSize;

/// The width of the first column.
const NAME_COLUMN: usize = 40;
/// The indentation of lines, and of a reason on lines of its own.
const INDENT: &str = "  ";
const REASON_INDENT: &str = "      ";
/// Rows that stay free for the cursor and for the line above.
const FREE_ROWS: usize = 2;

/// Formats `MARK NAME  REST` with `REST` in its column, or closer if the terminal is too narrow for that.
pub(super) fn format_columns(mark: &str, name: &str, rest: &str, width: usize) -> String {
    let padded = format!("{mark} {name:<NAME_COLUMN$} {rest}");
    let close = format!("{mark} {name}  {rest}");
    match INDENT.len() + measure_text_width(&padded) <= width {
        true => padded,
        false => close,
    }
}

/// Lines that belong together: one if everything fits, otherwise the reason below on lines of its own.
pub(super) fn format_block(mark: &str, name: &str, reason: &str, width: usize) -> Vec<String> {
    let (name, reason) = (escape_text(name), escape_text(reason));
    let line = format_columns(mark, &name, &reason, width);
    let line = format!("{INDENT}{}", line.trim_end());
    if !reason.contains('\n') && measure_text_width(&line) <= width {
        return vec![line];
    }
    let mut lines = wrap(&format!("{INDENT}{mark} {name}"), REASON_INDENT, width);
    for line in reason.lines() {
        let line = format!("{REASON_INDENT}{}", line.trim());
        lines.extend(wrap(&line, REASON_INDENT, width));
    }
    lines
}

/// Returns the blocks that fit a terminal, how many are left out, and the lines below them.
pub(super) fn fit_blocks(
    blocks: Vec<Vec<String>>,
    below: Vec<String>,
    size: ScreenSize,
) -> Vec<String> {
    let rows = size.height.saturating_sub(FREE_ROWS + below.len());
    let all: usize = blocks.iter().map(Vec::len).sum();
    // One row says how many are left out.
    let rows = if all <= rows {
        rows
    } else {
        rows.saturating_sub(1)
    };
    let count = blocks.len();
    let mut lines: Vec<String> = Vec::new();
    let mut shown = 0;
    for block in blocks {
        if lines.len() + block.len() > rows {
            break;
        }
        lines.extend(block);
        shown += 1;
    }
    if shown < count {
        lines.push(format!("{INDENT}… and {} more", count - shown));
    }
    lines.extend(below);
    lines
}

/// `waiting 42s of 5m0s`: how long an operation has run, and its timeout.
pub(super) fn format_deadline(elapsed: Duration, timeout: Duration) -> String {
    let elapsed = Duration::from_secs(elapsed.as_secs());
    let shown = format!("{} of {}", whole_seconds(elapsed), whole_seconds(timeout));
    format!("{INDENT}waiting {shown}")
}

/// The lines of work that has run for a while.
pub fn format_live_work(work: &str, elapsed: Duration, width: usize) -> Vec<String> {
    let elapsed = whole_seconds(Duration::from_secs(elapsed.as_secs()));
    let line = format!("{INDENT}… {}  {elapsed}", escape_text(work));
    wrap(&line, REASON_INDENT, width)
}

fn whole_seconds(time: Duration) -> String {
    let is_short = time.as_secs() < 60 && time.subsec_nanos() == 0;
    if is_short {
        format!("{}s", time.as_secs())
    } else {
        seconds(time)
    }
}

/// Breaks a line at blanks, and words that are too long anywhere. Further lines begin with `indent`.
fn wrap(line: &str, indent: &str, width: usize) -> Vec<String> {
    // A terminal may say that it has no columns.
    let width = width.max(indent.len() + 10);
    let mut lines = Vec::new();
    let mut rest = line.trim_end().to_owned();
    while measure_text_width(&rest) > width {
        let is_over = |at: usize| measure_text_width(&rest[..at]) > width;
        let starts = || rest.char_indices().map(|(at, _)| at);
        let end = starts().take_while(|at| !is_over(*at)).last();
        let end = end.unwrap_or(rest.len());
        let text = rest.len() - rest.trim_start().len();
        // The blank may be the first character that does not fit.
        let blank = rest
            .char_indices()
            .filter(|(at, c)| *c == ' ' && *at <= end);
        let at = match blank.map(|(at, _)| at).next_back().filter(|at| *at > text) {
            Some(at) => at,
            None => end,
        };
        let next = format!("{indent}{}", rest[at..].trim_start());
        rest.truncate(at);
        lines.push(rest.trim_end().to_owned());
        rest = next;
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASON: &str = "1/2 updated, 1 of 2 available; pod web-7d9c5b: Unschedulable: 0/4 nodes are available: 4 Insufficient memory";

    #[test]
    fn a_reason_is_never_cut() {
        assert_eq!(
            format_block("…", "shop/Deployment web", REASON, 60),
            [
                "  … shop/Deployment web",
                "      1/2 updated, 1 of 2 available; pod web-7d9c5b:",
                "      Unschedulable: 0/4 nodes are available: 4 Insufficient",
                "      memory",
            ]
        );
        assert_eq!(
            format_block("…", "shop/Deployment web", REASON, 140),
            [
                "  … shop/Deployment web  1/2 updated, 1 of 2 available; pod web-7d9c5b: Unschedulable: 0/4 nodes are available: 4 Insufficient memory"
            ]
        );
        assert_eq!(
            format_block("…", "shop/Deployment web", "0/1 ready", 60),
            ["  … shop/Deployment web                      0/1 ready"]
        );
        assert_eq!(format_block("✓", "web  3/3", "", 60), ["  ✓ web  3/3"]);
        for width in [0, 1, 20, 40, 60, 80, 140] {
            for word in [REASON, &"x".repeat(300), &"ü世 ".repeat(90), "a\n\nb"] {
                let lines = format_block("…", "shop/Deployment web", word, width);
                let widest = lines.iter().map(|line| measure_text_width(line)).max();
                assert!(widest <= Some(width.max(16)), "{width}: {lines:#?}");
                let is_same = |a: &str, b: &str| {
                    let text = |text: &str| text.replace(char::is_whitespace, "");
                    text(a) == text(b)
                };
                let whole = format!("…shop/Deployment web{word}");
                assert!(is_same(&lines.concat(), &whole), "{lines:#?}");
                assert!(lines.iter().all(|line| line.trim_end() == line));
            }
        }
    }

    #[test]
    fn a_terminal_with_few_rows_shows_how_many_are_left_out() {
        let blocks = |count: usize| (0..count).map(|i| vec![format!("  {i}")]).collect();
        let below = || vec!["  waiting 1s of 5m0s".to_owned()];
        let size = ScreenSize {
            height: 6,
            width: 80,
        };
        assert_eq!(
            fit_blocks(blocks(3), below(), size),
            ["  0", "  1", "  2", "  waiting 1s of 5m0s"]
        );
        assert_eq!(
            fit_blocks(blocks(9), below(), size),
            ["  0", "  1", "  … and 7 more", "  waiting 1s of 5m0s"]
        );
        assert!(fit_blocks(Vec::new(), Vec::new(), size).is_empty());
    }

    #[test]
    fn the_deadline_is_the_timeout() {
        let shown = |elapsed: u64, timeout: u64| {
            let elapsed = Duration::from_millis(elapsed);
            format_deadline(elapsed, Duration::from_millis(timeout))
        };
        assert_eq!(shown(42_400, 300_000), "  waiting 42s of 5m0s");
        assert_eq!(shown(65_000, 300_000), "  waiting 1m5s of 5m0s");
        assert_eq!(shown(0, 1_500), "  waiting 0s of 1.5s");
    }
}
