//! The pages of the project: their lines, the blocks in them, and the output that they show below commands.
//!
//! A page is a `*.md` file of the checkout. Code is fenced by three backticks; a code span ends on the line where it begins.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// The folder of the checkout.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// How a line of a block begins that is a command with its output below it.
const PROMPT: &str = "$ ";
/// What stands in a page for text that is not the same in every run: a part of a line, or as a line of its own, any lines.
const ANYTHING: &str = "...";
/// How a line of progress begins that is printed only while something takes long enough.
const WAITING: &str = "  … ";
/// How a line of progress begins that says what is done.
const DONE: &str = "  ✓ ";

/// One page.
pub struct Page {
    /// From the root of the checkout.
    pub name: String,
    /// Of the file.
    pub path: PathBuf,
    /// All of its lines.
    pub lines: Vec<Line>,
}

/// One line of a page.
pub struct Line {
    /// From 1.
    pub number: usize,
    /// Without the end of the line.
    pub text: String,
    /// Of a line of code: what stands behind the fence of its block, mostly nothing. Fences count as code.
    pub language: Option<String>,
}

/// A command of a page, and the output below it.
pub struct Shown {
    /// The page, and the line of the command.
    pub place: String,
    /// The command as it is typed.
    pub command: String,
    /// What it prints on a terminal, both streams. Empty if the page does not show it.
    pub output: Vec<String>,
}

/// The blocks of the text of a page, each with its language and without its fences.
pub fn blocks(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let blocks = page.split("```").skip(1).step_by(2);
    blocks.map(|block| block.split_once('\n').unwrap_or((block, "")))
}

impl Page {
    /// A page by its path from the root of the checkout.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn named(name: &str) -> Result<Self> {
        Self::read(Path::new(ROOT).join(name))
    }

    /// A page by the path of its file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(ROOT).unwrap_or(&path);
        let mut block: Option<String> = None;
        let lines = text.lines().enumerate().map(|(index, text)| {
            let fence = text.trim_start().strip_prefix("```");
            let before = block.clone();
            if let Some(language) = fence {
                block = match before {
                    Some(_) => None,
                    None => Some(language.to_owned()),
                };
            }
            Line {
                number: index + 1,
                text: text.to_owned(),
                language: before.or_else(|| block.clone()),
            }
        });
        Ok(Self {
            name: name.display().to_string(),
            lines: lines.collect(),
            path,
        })
    }

    /// Its lines outside of blocks.
    pub fn prose(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.language.is_none())
    }

    /// The commands with a prompt, in their order.
    #[must_use]
    pub fn shown(&self) -> Vec<Shown> {
        let mut all: Vec<Shown> = Vec::new();
        let mut is_below = false;
        for line in &self.lines {
            if line.language.is_none() || line.text.starts_with("```") {
                is_below = false;
            } else if let Some(command) = line.text.strip_prefix(PROMPT) {
                is_below = true;
                all.push(Shown {
                    place: format!("{}:{}", self.name, line.number),
                    command: command.to_owned(),
                    output: Vec::new(),
                });
            } else if let Some(shown) = all.last_mut().filter(|_| is_below) {
                shown.output.push(line.text.clone());
            }
        }
        for shown in &mut all {
            while shown.output.last().is_some_and(String::is_empty) {
                shown.output.pop();
            }
        }
        all
    }

    /// The anchors of its headings, as GitHub makes them.
    #[must_use]
    pub fn anchors(&self) -> BTreeSet<String> {
        let mut anchors = BTreeSet::new();
        for line in self.prose().filter(|line| line.text.starts_with('#')) {
            let title = line.text.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            });
            let anchor: String = kept.collect();
            let mut unique = anchor.clone();
            let mut count = 0;
            while !anchors.insert(unique.clone()) {
                count += 1;
                unique = format!("{anchor}-{count}");
            }
        }
        anchors
    }

    /// Code spans of its prose, with the number of their line.
    pub fn spans(&self) -> impl Iterator<Item = (usize, &str)> {
        self.prose().flat_map(|line| {
            let pieces = line.text.split('`').skip(1).step_by(2);
            pieces.map(|span| (line.number, span))
        })
    }
}

impl Shown {
    /// Whether the command printed what the page shows. Durations, points in time, the width of columns, the order of what is done at
    /// the same time, and the lines of progress of what takes long differ from run to run.
    ///
    /// # Errors
    /// With the first line that differs, and all that was printed.
    pub fn is(&self, printed: &str) -> Result<()> {
        let expected = steady(self.output.iter().map(String::as_str));
        let found = steady(printed.lines());
        if let Some(line) = first_difference(&expected, &found) {
            let Self { place, command, .. } = self;
            bail!("{place}: {command}\nthe page shows: {line}\nit printed:\n{printed}");
        }
        Ok(())
    }
}

/// The first expected line that was not printed, or the first printed one that was not expected.
fn first_difference<'a>(expected: &'a [String], found: &'a [String]) -> Option<&'a str> {
    let mut found = found.iter();
    let mut is_open = false;
    for line in expected {
        if line == ANYTHING {
            is_open = true;
            continue;
        }
        let is_there = match is_open {
            true => found.any(|printed| is_like(line, printed)),
            false => found.next().is_some_and(|printed| is_like(line, printed)),
        };
        if !is_there {
            return Some(line);
        }
        is_open = false;
    }
    match is_open {
        true => None,
        false => found.next().map(|_| "nothing more"),
    }
}

/// Whether a line is as the page shows it.
fn is_like(expected: &str, printed: &str) -> bool {
    let pieces: Vec<&str> = expected.split(ANYTHING).collect();
    let [first, between @ .., last] = pieces.as_slice() else {
        return expected == printed;
    };
    let Some(mut rest) = printed.strip_prefix(first) else {
        return false;
    };
    for piece in between {
        let Some((_, after)) = rest.split_once(piece) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

/// Lines without what differs from run to run.
fn steady<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let lines = lines.filter(|line| !line.starts_with(WAITING));
    let mut lines: Vec<String> = lines.map(without_times).collect();
    let done = |one: &String, next: &String| one.starts_with(DONE) && next.starts_with(DONE);
    for at_the_same_time in lines.chunk_by_mut(done) {
        at_the_same_time.sort();
    }
    lines
}

/// A line with single blanks between its words, and without durations and points in time.
fn without_times(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let words = line.split_whitespace().map(|word| match word {
        word if word.starts_with(|c: char| c.is_ascii_digit()) => time(word),
        word => word.to_owned(),
    });
    let words: Vec<String> = words.collect();
    format!("{}{}", " ".repeat(indent), words.join(" "))
}

/// A word that is a duration or a point in time, without its number; another one as it is.
fn time(word: &str) -> String {
    let end = word.trim_end_matches([',', ';', ':', '.', ')']);
    let (word, punctuation) = word.split_at(end.len());
    let is_point = word.len() == "2026-01-01T00:00:00Z".len() && word.ends_with('Z');
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_number = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let unit = &word[digits.len()..];
    match unit {
        _ if is_point => format!("TIME{punctuation}"),
        "ms" | "s" | "m" | "h" | "d" if is_number => format!("DURATION{punctuation}"),
        _ => format!("{word}{punctuation}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: &str) -> Shown {
        Shown {
            place: "page.md:1".to_owned(),
            command: "list".to_owned(),
            output: output.lines().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn what_is_as_the_page_shows_it() {
        for (page, printed) in [
            ("web   Ready   0s", "web   Ready   12s\n"),
            ("ready in 0.1s", "  … web  waiting\nready in 2.3s"),
            (
                "at 2026-01-01T00:00:00Z, now",
                "at 2027-11-30T10:20:30Z, now",
            ),
            ("a ... c", "a bb c"),
            ("sha256:6b...", "sha256:6bff"),
            ("one\n...\nfour", "one\ntwo\nthree\nfour"),
            ("one\n...", "one\ntwo"),
        ] {
            assert!(shown(page).is(printed).is_ok(), "{page}: {printed}");
        }
    }

    #[test]
    fn what_is_not() {
        for (page, printed) in [
            ("web  1.0.0", "web  1.1.0"),
            ("  web", "web"),
            ("one", "one\ntwo"),
            ("one\ntwo", "one"),
            ("a ... c", "a bb d"),
            ("a ... c", "a b c d"),
            ("one\n...\nfour", "one\ntwo"),
            ("2 replicas", "3 replicas"),
        ] {
            assert!(shown(page).is(printed).is_err(), "{page}: {printed}");
        }
    }
}
