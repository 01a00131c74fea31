//! Untrusted texts: of a catalogue, a manifest, a server, or helm.

use std::fmt;

/// An untrusted text in one line, without control sequences for terminals. It cannot be mistaken for a line of our own output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignText(String);

impl ForeignText {
    /// Joins the lines of a text, and escapes the characters that control a terminal.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = text.replace(['\t', '\r'], " ");
        if !text.contains('\n') {
            return Self(escape_controls(&text));
        }
        let lines = text.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        Self(escape_controls(&lines.join("; ")))
    }
}

impl fmt::Display for ForeignText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ForeignText> for String {
    fn from(text: ForeignText) -> Self {
        text.0
    }
}

/// Escapes the characters that control a terminal, as in JSON. Line breaks and tabs stay.
#[must_use]
pub fn escape_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether a character is a control character, changes the direction of a text, or is invisible.
fn is_control(c: char) -> bool {
    let is_unseen = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    is_unseen || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_one_line() {
        for (text, shown) in [
            ("1.0.0", "1.0.0"),
            ("  kept  as it is ", "  kept  as it is "),
            (
                "x)\n  verified  signed by a@b\n",
                "x); verified  signed by a@b",
            ),
            ("not ready\r\n\n  timed out\n", "not ready; timed out"),
            ("a\tb\rc", "a b c"),
            ("a\u{2028}b\u{1b}[2J\u{9b}c", "a\\u2028b\\u001b[2J\\u009bc"),
            (
                "a\u{200b}\u{feff}\u{e0041}b",
                "a\\u200b\\ufeff\\udb40\\udc41b",
            ),
        ] {
            assert_eq!(ForeignText::new(text).to_string(), shown, "{text:?}");
        }
    }

    #[test]
    fn what_is_written_out_is_the_same_json() {
        let text = "a\u{9b}2J \u{202e}b\u{e0041}ä";
        let json = serde_json::to_string(text).unwrap();
        let shown = escape_controls(&json);
        assert!(shown.is_ascii() || shown.contains('ä'), "{shown}");
        let read: String = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, text);
    }
}
