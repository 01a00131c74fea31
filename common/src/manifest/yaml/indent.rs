//! Quoted text over several lines: Kubernetes' loader lets the lines after the first begin anywhere, our parser wants
//! them indented deeper than the map around them. Old CustomResourceDefinitions are full of it:
//!
//! ```yaml
//! properties:
//!   description: 'Servers should convert recognized schemas to the latest
//!   internal value.'
//! ```
//!
//! Blanks at the beginning of such a line mean nothing, so some are put in and the section is read again.

use std::borrow::Cow;
use std::collections::BTreeSet;

use granit_parser::Marker;

/// Blanks that are put in: more than any map is indented by.
const BLANKS: usize = 256;
/// Most lines of a section that blanks are put into.
const MAX_LINES: usize = 16_384;

/// The text of a section, and the lines that blanks were put into.
pub(super) struct Indented<'a> {
    text: Cow<'a, str>,
    /// In the section, from 1.
    lines: BTreeSet<usize>,
}

impl<'a> Indented<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text: Cow::Borrowed(text),
            lines: BTreeSet::new(),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Column of a place in the text as it was, from 1.
    pub(super) fn column(&self, at: &Marker) -> usize {
        let added = if !self.lines.is_empty() && self.lines.contains(&at.line()) {
            BLANKS
        } else {
            0
        };
        at.col().saturating_sub(added) + 1
    }

    /// Indents the line of a quoted text that the parser refused, and the next ones as far as the text surely goes on:
    /// up to the first line with a quote in it. False where that would not help.
    pub(super) fn indent(&mut self, at: &Marker) -> bool {
        let Some((before, _)) = at
            .byte_offset()
            .and_then(|offset| self.text.split_at_checked(offset))
        else {
            return false;
        };
        let start = before.rfind(['\n', '\r']).map_or(0, |index| index + 1);
        let (before, rest) = self.text.split_at(start);
        let mut line = at.line();
        if self.lines.len() >= MAX_LINES || self.lines.contains(&line) {
            return false;
        }
        let blanks = " ".repeat(BLANKS);
        let mut text = String::with_capacity(self.text.len() + 16 * BLANKS);
        text.push_str(before);
        let mut rest = rest.split_inclusive('\n');
        for quoted in rest.by_ref() {
            text.push_str(&blanks);
            text.push_str(quoted);
            self.lines.insert(line);
            line += 1;
            if quoted.contains(['\'', '"']) || self.lines.len() >= MAX_LINES {
                break;
            }
        }
        text.extend(rest);
        self.text = Cow::Owned(text);
        true
    }
}
