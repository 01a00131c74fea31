//! Colours of text for people, from the 16 colours of the terminal's own palette.
//!
//! A colour only repeats what a word or a mark says. Text is painted line by line at the moment it is printed, by the mark or the word at
//! the beginning of each line and by the states in columns, so widths of columns are not affected. The streams remove the colours unless
//! they are terminals, or as `--color`, `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE` say.

use std::borrow::Cow;

use addons_plan::standing::StandingState;
use anstyle::{AnsiColor, Style};

use crate::cli::ColorChoice;

/// What a coloured text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Something is created.
    Added,
    /// Something is changed in place, or recreated.
    Changed,
    /// Something is deleted.
    Removed,
    /// A write that the server does not allow.
    Refused,
    /// It works.
    Good,
    /// It does not work.
    Bad,
    /// It may still become good, or needs attention.
    Waiting,
}

impl Role {
    const fn style(self) -> Style {
        let color = match self {
            Self::Added | Self::Good => AnsiColor::Green,
            Self::Changed | Self::Waiting => AnsiColor::Yellow,
            Self::Removed | Self::Bad => AnsiColor::Red,
            Self::Refused => AnsiColor::Magenta,
        };
        color.on_default()
    }

    /// Paints a text without line breaks.
    pub fn paint(self, text: &str) -> String {
        let style = self.style();
        format!("{style}{text}{style:#}")
    }
}

/// Marks at the beginning of a line. The line of a change has one colour, of other lines only the mark.
const MARKS: [(&str, Role, bool); 8] = [
    ("+", Role::Added, true),
    ("~", Role::Changed, true),
    ("±", Role::Changed, true),
    ("-", Role::Removed, true),
    ("!", Role::Refused, true),
    ("✓", Role::Good, false),
    ("✗", Role::Bad, false),
    ("…", Role::Waiting, false),
];
/// Labels at the beginning of a message.
const LABELS: [(&str, Role); 2] = [("error:", Role::Bad), ("warning:", Role::Waiting)];
/// Words in the first column of plans and reports.
const WORDS: [(&str, Role); 25] = [
    ("create", Role::Added),
    ("created", Role::Added),
    ("adopt", Role::Changed),
    ("adopted", Role::Changed),
    ("update", Role::Changed),
    ("updated", Role::Changed),
    ("changed", Role::Changed),
    ("restore", Role::Changed),
    ("refresh", Role::Changed),
    ("recreate", Role::Changed),
    ("recreated", Role::Changed),
    ("migrate", Role::Changed),
    ("prune", Role::Removed),
    ("pruned", Role::Removed),
    ("delete", Role::Removed),
    ("deleted", Role::Removed),
    ("gone", Role::Removed),
    ("missing", Role::Removed),
    ("refused", Role::Refused),
    ("conflict", Role::Refused),
    ("failed", Role::Bad),
    ("invalid", Role::Bad),
    ("skipped", Role::Waiting),
    ("not ready", Role::Waiting),
    ("warning", Role::Waiting),
];
/// The indentation of that column, and its width.
const WORD_COLUMN: (usize, usize) = (2, 9);
/// The deepest indentation of a line with a mark. Deeper lines are values and advice.
const MAX_MARK_INDENT: usize = 2;
/// How many blanks separate columns at least.
const COLUMN_GAP: &str = "   ";

/// The states of installations.
const STATES: [StandingState; 18] = [
    StandingState::Ready,
    StandingState::Suspended,
    StandingState::Degraded,
    StandingState::Unknown,
    StandingState::Failed,
    StandingState::Progressing,
    StandingState::Interrupted,
    StandingState::Pending,
    StandingState::Uninstalling,
    StandingState::Orphaned,
    StandingState::Unlisted,
    StandingState::Incompatible,
    StandingState::NeedsConfirmation,
    StandingState::Waiting,
    StandingState::Contested,
    StandingState::Stalled,
    StandingState::RecordOlderThanCluster,
    StandingState::OtherCluster,
];

const fn state_role(state: StandingState) -> Role {
    use StandingState as S;
    match state {
        S::Ready => Role::Good,
        S::Suspended
        | S::Waiting
        | S::Unknown
        | S::Progressing
        | S::Pending
        | S::Uninstalling
        | S::Unlisted
        | S::NeedsConfirmation => Role::Waiting,
        S::Degraded
        | S::Failed
        | S::Interrupted
        | S::Orphaned
        | S::Incompatible
        | S::Contested
        | S::Stalled
        | S::RecordOlderThanCluster
        | S::OtherCluster => Role::Bad,
    }
}

/// Decides for the whole process whether it prints colours.
pub fn choose(choice: ColorChoice) {
    match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Whether text on stderr has colours. For text that does not go through `anstream`.
pub(super) fn is_on_stderr() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// Paints a finished text for people: the marks of changes and of progress, `error:` and `warning:`, the first words of plans and reports,
/// and the states of installations. Its control characters have to be escaped before.
pub fn paint(text: &str) -> String {
    let mut painted = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        painted.push_str(&paint_line(line));
        painted.push_str(end);
    }
    painted
}

fn paint_line(line: &str) -> Cow<'_, str> {
    let rest = line.trim_start_matches(' ');
    let indent = line.len() - rest.len();
    let blanks = " ".repeat(indent);
    if indent <= MAX_MARK_INDENT {
        let follows = |mark: &str| {
            let after = rest.strip_prefix(mark)?;
            after.starts_with(' ').then_some(after)
        };
        for (mark, role, is_whole) in MARKS {
            match follows(mark) {
                Some(_) if is_whole => return Cow::Owned(blanks + &role.paint(rest)),
                Some(after) => {
                    return Cow::Owned(blanks + &role.paint(mark) + &paint_states(after));
                }
                None => {}
            }
        }
        for (label, role) in LABELS {
            if let Some(after) = follows(label) {
                return Cow::Owned(blanks + &role.paint(label) + after);
            }
        }
    }
    if indent == WORD_COLUMN.0
        && let Some((cell, after)) = rest.split_at_checked(WORD_COLUMN.1)
        && after.starts_with(' ')
    {
        let word = cell.trim_end();
        if let Some((_, role)) = WORDS.iter().find(|(known, _)| *known == word) {
            let (word, gap) = cell.split_at(word.len());
            return Cow::Owned(blanks + &role.paint(word) + gap + after);
        }
    }
    paint_states(line)
}

/// Paints the states at the beginning of columns: `Ready`, and `Degraded` of `Degraded: Deployment web is gone`.
fn paint_states(line: &str) -> Cow<'_, str> {
    if !line.contains(COLUMN_GAP) {
        return Cow::Borrowed(line);
    }
    let cells = line.split(COLUMN_GAP).map(|cell| {
        let text = cell.trim_start_matches(' ');
        let end = text.find(|c: char| !c.is_ascii_alphabetic());
        let (word, after) = text.split_at(end.unwrap_or(text.len()));
        let is_whole = after.is_empty() || after.starts_with([':', ' ']);
        let mut states = STATES.iter();
        match states.find(|state| is_whole && !word.is_empty() && state.to_string() == word) {
            Some(state) => {
                let blanks = &cell[..cell.len() - text.len()];
                Cow::Owned(format!("{blanks}{}{after}", state_role(*state).paint(word)))
            }
            None => Cow::Borrowed(cell),
        }
    });
    let cells: Vec<Cow<'_, str>> = cells.collect();
    Cow::Owned(cells.join(COLUMN_GAP))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Colours as tags: `<green>`, and `</>` where they end.
    fn tagged(text: &str) -> String {
        let mut painted = paint(text);
        for (code, tag) in [
            ("32", "green"),
            ("33", "yellow"),
            ("31", "red"),
            ("35", "magenta"),
        ] {
            painted = painted.replace(&format!("\u{1b}[{code}m"), &format!("<{tag}>"));
        }
        painted.replace("\u{1b}[0m", "</>")
    }

    #[test]
    fn a_line_is_painted_by_its_mark() {
        for (line, expected) in [
            ("+ shop/ConfigMap a", "<green>+ shop/ConfigMap a</>"),
            ("~ shop/ConfigMap a", "<yellow>~ shop/ConfigMap a</>"),
            ("± shop/Job a", "<yellow>± shop/Job a</>"),
            ("- shop/Job a", "<red>- shop/Job a</>"),
            ("! shop/Job a", "<magenta>! shop/Job a</>"),
            ("  ✓ web  3/3", "  <green>✓</> web  3/3"),
            ("  ✗ web  1/3", "  <red>✗</> web  1/3"),
            ("  … web  1/3", "  <yellow>…</> web  1/3"),
            // Values and advice are below, and deeper.
            ("    - name: a", "    - name: a"),
            ("    spec.a   1 → 2", "    spec.a   1 → 2"),
            ("-1 of them", "-1 of them"),
            ("±", "±"),
        ] {
            assert_eq!(tagged(line), expected);
        }
    }

    #[test]
    fn messages_and_plans_are_painted_by_their_first_word() {
        for (text, expected) in [
            (
                "error: a\n       look:   b\n",
                "<red>error:</> a\n       look:   b\n",
            ),
            ("warning: a", "<yellow>warning:</> a"),
            ("errors: a", "errors: a"),
            (
                "  create    2 objects   Job ×2",
                "  <green>create</>    2 objects   Job ×2",
            ),
            (
                "  recreated shop/Job a",
                "  <yellow>recreated</> shop/Job a",
            ),
            (
                "  not ready shop/Job a: 0/1",
                "  <yellow>not ready</> shop/Job a: 0/1",
            ),
            ("  failed    a: b", "  <red>failed</>    a: b"),
            ("  refused   a: b", "  <magenta>refused</>   a: b"),
            // A sentence, not a column.
            ("  create it again", "  create it again"),
            ("create    a", "create    a"),
            ("  größe… ü", "  größe… ü"),
        ] {
            assert_eq!(tagged(text), expected);
        }
    }

    #[test]
    fn states_are_painted_where_a_column_begins() {
        for (line, expected) in [
            (
                "web    shop   1.0.0   Ready   –   2d",
                "web    shop   1.0.0   <green>Ready</>   –   2d",
            ),
            (
                "web    shop   1.0.0      Degraded: Deployment web is gone   –",
                "web    shop   1.0.0      <red>Degraded</>: Deployment web is gone   –",
            ),
            (
                "web 1.0.0 in shop   Pending",
                "web 1.0.0 in shop   <yellow>Pending</>",
            ),
            ("web   Readyish   Not Ready", "web   Readyish   Not Ready"),
            ("Failed is a word here", "Failed is a word here"),
        ] {
            assert_eq!(tagged(line), expected);
        }
    }

    #[test]
    fn painting_changes_nothing_but_colours() {
        let text =
            "NAME   STATUS\nweb    Ready\n+ a\n  create    b\n\n  ✗ ü   Stalled: c\nerror: d";
        let painted = paint(text);
        assert_ne!(painted, text);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), text);
        // Only the 16 colours of the palette.
        for code in painted.split("\u{1b}[").skip(1) {
            let code = code.split_once('m').unwrap().0;
            assert!(matches!(code, "0" | "31" | "32" | "33" | "35"), "{code}");
        }
        for role in [Role::Added, Role::Refused, Role::Waiting] {
            assert_eq!(
                anstream::adapter::strip_str(&role.paint("a")).to_string(),
                "a"
            );
        }
    }
}
