//! Formats numbers and texts with the flags of a verb: fmt/format.go.

use std::fmt::Write as _;

use super::number::{self, FloatStyle};

/// The flags between `%` and the verb.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FormatFlags {
    /// `-`: padded on the right.
    pub minus: bool,
    /// `+`: always with a sign; texts in ASCII.
    pub plus: bool,
    /// `#`: with a prefix; texts in backquotes.
    pub sharp: bool,
    /// A blank: leaves room for a sign, and separates bytes.
    pub space: bool,
    /// `0`: padded with zeros.
    pub zero: bool,
    /// Minimum number of characters.
    pub width: Option<usize>,
    /// Number of digits, or maximum number of characters.
    pub precision: Option<usize>,
    /// `%#v`: Go syntax.
    pub go_syntax: bool,
    /// `%+v`: with field names.
    pub names: bool,
}

impl FormatFlags {
    /// Writes `text`, padded to the width.
    pub(super) fn pad(&self, out: &mut String, text: &str) {
        let Some(width) = self.width else {
            return out.push_str(text);
        };
        let missing = width.saturating_sub(text.chars().count());
        if self.minus {
            out.push_str(text);
            out.extend(std::iter::repeat_n(' ', missing));
        } else {
            let padding = if self.zero { '0' } else { ' ' };
            out.extend(std::iter::repeat_n(padding, missing));
            out.push_str(text);
        }
    }

    fn pad_with_blanks(&self, out: &mut String, text: &str) {
        Self {
            zero: false,
            ..*self
        }
        .pad(out, text);
    }

    /// `%d`, `%b`, `%o`, `%O`, `%x`, `%X`
    pub(super) fn integer(&self, out: &mut String, value: i128, verb: char) {
        let magnitude = value.unsigned_abs();
        let signed = value < 0 || self.plus || self.space;
        let least = match (self.precision, self.width) {
            (Some(0), _) if value == 0 => return self.pad_with_blanks(out, ""),
            (Some(precision), _) => precision,
            (None, Some(width)) if self.zero && !self.minus => width.saturating_sub(signed.into()),
            _ => 0,
        };
        let (digits, prefix) = match verb {
            'b' => (format!("{magnitude:b}"), "0b"),
            'o' | 'O' => (format!("{magnitude:o}"), "0"),
            'x' => (format!("{magnitude:x}"), "0x"),
            'X' => (format!("{magnitude:X}"), "0X"),
            _ => (magnitude.to_string(), ""),
        };
        let mut text = with_zeros(&digits, least);
        if self.sharp && !(prefix == "0" && text.starts_with('0')) {
            text.insert_str(0, prefix);
        }
        if verb == 'O' {
            text.insert_str(0, "0o");
        }
        match value {
            ..0 => text.insert(0, '-'),
            _ if self.plus => text.insert(0, '+'),
            _ if self.space => text.insert(0, ' '),
            _ => {}
        }
        self.pad_with_blanks(out, &text);
    }

    /// `%c`
    pub(super) fn character(&self, out: &mut String, code: i128) {
        self.pad(out, character(code).encode_utf8(&mut [0; 4]));
    }

    /// `%q` of a number: `'a'`
    pub(super) fn quoted_character(&self, out: &mut String, code: i128) {
        self.pad(
            out,
            &quote(character(code).encode_utf8(&mut [0; 4]), '\'', self.plus),
        );
    }

    /// `%U`: `U+0041`, with `#` also the character.
    pub(super) fn unicode(&self, out: &mut String, code: i128) {
        let digits = self.precision.unwrap_or_default().max(4);
        let mut text = format!("U+{}", with_zeros(&format!("{:X}", code as u64), digits));
        let shown = u32::try_from(code).ok().and_then(char::from_u32);
        if let Some(shown) = shown.filter(|shown| self.sharp && is_printable(*shown)) {
            // Writing to a String cannot fail.
            let _ = write!(text, " '{shown}'");
        }
        self.pad_with_blanks(out, &text);
    }

    /// `%e`, `%f`, `%g` and their capitals; `%v` is `%g`.
    pub(super) fn float(&self, out: &mut String, value: f64, verb: char) {
        let (style, default) = match verb {
            'e' | 'E' => (FloatStyle::Exponent, Some(6)),
            'f' | 'F' => (FloatStyle::Fixed, Some(6)),
            _ => (FloatStyle::General, None),
        };
        let mut text = number::format_float(value, style, self.precision.or(default));
        if verb.is_ascii_uppercase() {
            text = text.replace('e', "E");
        }
        if !value.is_finite() {
            return self.pad_with_blanks(out, &text);
        }
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None if self.plus => ("+", text.as_str()),
            None if self.space => (" ", text.as_str()),
            None => ("", text.as_str()),
        };
        // Padding zeros come between the sign and the digits.
        let width = self.width.unwrap_or_default();
        if self.zero && !self.minus && width > sign.len() + digits.len() {
            out.push_str(sign);
            out.push_str(&with_zeros(digits, width - sign.len()));
        } else {
            self.pad(out, &format!("{sign}{digits}"));
        }
    }

    /// `(1+2i)`
    pub(super) fn complex(&self, out: &mut String, real: f64, imaginary: f64, verb: char) {
        out.push('(');
        self.float(out, real, verb);
        let signed = Self {
            plus: true,
            ..*self
        };
        signed.float(out, imaginary, verb);
        out.push_str("i)");
    }

    /// `%s`
    pub(super) fn text(&self, out: &mut String, text: &str) {
        self.pad(out, self.truncate(text));
    }

    /// `%q`
    pub(super) fn quoted(&self, out: &mut String, text: &str) {
        let text = self.truncate(text);
        let bare = |c: char| c != '`' && c != '\u{feff}' && (c == '\t' || !c.is_control());
        if self.sharp && text.chars().all(bare) {
            self.pad(out, &format!("`{text}`"));
        } else {
            self.pad(out, &quote(text, '"', self.plus));
        }
    }

    /// `%x` and `%X` of a text: its bytes.
    pub(super) fn bytes(&self, out: &mut String, text: &str, verb: char) {
        let length = self.precision.unwrap_or(usize::MAX);
        let prefix = match verb {
            'x' if self.sharp => "0x",
            'X' if self.sharp => "0X",
            _ => "",
        };
        let mut digits = String::new();
        for (index, byte) in text.bytes().take(length).enumerate() {
            if index > 0 && self.space {
                digits.push(' ');
            }
            if index == 0 || self.space {
                digits.push_str(prefix);
            }
            let _ = match verb {
                'X' => write!(digits, "{byte:02X}"),
                _ => write!(digits, "{byte:02x}"),
            };
        }
        self.pad(out, &digits);
    }

    /// Cuts a text to as many characters as the precision says.
    fn truncate<'a>(&self, text: &'a str) -> &'a str {
        let end = self
            .precision
            .and_then(|length| text.char_indices().nth(length));
        end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
    }
}

/// Pads to at least `least` digits. Done by hand: the formatter of the standard library panics above a width of 65,535, and Go allows a
/// million.
fn with_zeros(digits: &str, least: usize) -> String {
    let mut text = "0".repeat(least.saturating_sub(digits.len()));
    text.push_str(digits);
    text
}

fn character(code: i128) -> char {
    let code = u32::try_from(code).ok();
    code.and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Go's `strconv.Quote`: escapes unprintable characters, and with `ascii` all characters outside of ASCII.
pub(crate) fn quote(text: &str, quote: char, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) && (c.is_ascii() || !ascii) => out.push(c),
            // Writing to a String cannot fail.
            c => {
                let _ = match u32::from(c) {
                    code @ (..0x20 | 0x7f) => write!(out, "\\x{code:02x}"),
                    code @ ..0x1_0000 => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
    out
}

/// Go's `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII blank.
pub(crate) fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    // The standard library escapes a combining mark unless a letter precedes it.
    let text: String = ['a', c].iter().collect();
    text.escape_debug().nth(1) == Some(c)
}
