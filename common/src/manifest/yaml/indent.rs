//! Handles quoted text over several lines: Kubernetes' loader allows the lines after the first one to begin anywhere, but our parser
//! requires them to be indented deeper than the map that contains them. Old CustomResourceDefinitions have many such texts:
//!
//! ```yaml
//! properties:
//!   description: 'Servers should convert recognized schemas to the latest
//!   internal value.'
//! ```
//!
//! Blanks at the beginning of such a line are not part of the text, so blanks are inserted there and the section is read again.

use std::borrow::Cow;
use std::collections::BTreeSet;

use granit_parser::Marker;

/// Number of blanks to insert, more than the indentation of any map.
const BLANKS: usize = 256;
/// Maximum number of lines of a section that get blanks.
const MAX_LINES: usize = 16_384;

/// The text of a section, and the lines with inserted blanks.
pub(super) struct IndentedText<'a> {
    text: Cow<'a, str>,
    /// Line numbers in the section, from 1.
    lines: BTreeSet<usize>,
}

impl<'a> IndentedText<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text: Cow::Borrowed(text),
            lines: BTreeSet::new(),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the column of a position in the original text, from 1.
    pub(super) fn column(&self, at: &Marker) -> usize {
        let added = if !self.lines.is_empty() && self.lines.contains(&at.line()) {
            BLANKS
        } else {
            0
        };
        at.col().saturating_sub(added) + 1
    }

    /// Indents the line of a quoted text that the parser refused, and the following lines that certainly belong to it, up to the first one
    /// with a quote. Returns false if that would not help.
    pub(super) fn indent(&mut self, at: &Marker) -> bool {
        let Some((before, _)) = at
            .byte_offset()
            .and_then(|offset| self.text.split_at_checked(offset))
        else {
            return false;
        };
        let start = before.rfind(['\n', '\r']).map_or(0, |index| index + 1);
        let (before, rest) = self.text.split_at(start);
        let line = at.line();
        if rest.is_empty() || self.lines.len() >= MAX_LINES || self.lines.contains(&line) {
            return false;
        }
        let blanks = " ".repeat(BLANKS);
        let mut text = String::with_capacity(self.text.len() + 16 * BLANKS);
        text.push_str(before);
        let mut rest = rest.split_inclusive('\n');
        for (line, quoted) in (line..).zip(rest.by_ref()) {
            text.push_str(&blanks);
            text.push_str(quoted);
            self.lines.insert(line);
            if quoted.contains(['\'', '"']) || self.lines.len() >= MAX_LINES {
                break;
            }
        }
        text.extend(rest);
        self.text = Cow::Owned(text);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_bounded() {
        let text = "x\n".repeat(MAX_LINES + 2);
        let at = |line: usize| Marker::new(0, line, 0).with_byte_offset(Some(2 * (line - 1)));
        let mut indented = IndentedText::new(&text);
        assert!(indented.indent(&at(1)));
        assert_eq!(indented.text().len(), text.len() + MAX_LINES * BLANKS);
        assert!(!indented.indent(&at(MAX_LINES + 1)));
        let mut indented = IndentedText::new("a\nb\n'c\nd\n");
        assert!(indented.indent(&at(2)));
        let blanks = " ".repeat(BLANKS);
        assert_eq!(indented.text(), format!("a\n{blanks}b\n{blanks}'c\nd\n"));
        let length = indented.text().len();
        let end = Marker::new(0, 5, 0).with_byte_offset(Some(length));
        assert!(!indented.indent(&end));
    }
}
