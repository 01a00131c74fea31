//! Parses constants: numbers, characters and texts, as Go's strconv does.

use crate::value::number::{parse_integer, without_underscores};

use crate::value::hexadecimal;
/// A number without a type: it gets the type of the parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberConstant<'a> {
    /// Its spelling.
    pub text: &'a str,
    /// Its value if it is whole and fits an int64.
    pub int: Option<i64>,
    /// Its value if it is a real number.
    pub float: Option<f64>,
    /// Its value if it is written as a complex number.
    pub complex: Option<(f64, f64)>,
}

impl<'a> NumberConstant<'a> {
    /// Parses `17`, `0x1F`, `1_000`, `1.5e3` or `2i`.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        let illegal = || format!("illegal number syntax: {text:?}");
        if let Some(imaginary) = text.strip_suffix('i') {
            let imaginary = parse_float(imaginary).ok_or_else(illegal)?;
            return Ok(Self::complex(text, 0.0, imaginary));
        }
        if let Some(whole) = parse_integer(text) {
            let int = i64::try_from(whole).ok();
            return Ok(Self::real(text, int, whole as f64));
        }
        let float = parse_float(text).ok_or_else(illegal)?;
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {text:?}"));
        }
        // Whole, and within the range of an int64.
        let whole = float.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&float);
        Ok(Self::real(text, whole.then_some(float as i64), float))
    }

    fn real(text: &'a str, int: Option<i64>, float: f64) -> Self {
        Self {
            text,
            int,
            float: Some(float),
            complex: None,
        }
    }

    fn complex(text: &'a str, real: f64, imaginary: f64) -> Self {
        Self {
            text,
            int: None,
            float: None,
            complex: Some((real, imaginary)),
        }
    }

    /// Parses `1+2i`.
    pub fn parse_complex(text: &'a str) -> Result<Self, String> {
        let illegal = || format!("illegal number syntax: {text:?}");
        let body = text.strip_suffix('i').ok_or_else(illegal)?;
        let signs = body
            .char_indices()
            .skip(1)
            .filter(|(_, c)| matches!(c, '+' | '-'));
        // Skip the sign of an exponent.
        let mut signs = signs.filter(|(at, _)| {
            let before = body.get(..*at).unwrap_or_default();
            !before.ends_with(['e', 'E', 'p', 'P'])
        });
        let (at, _) = signs.next().ok_or_else(illegal)?;
        let (real, imaginary) = body.split_at_checked(at).ok_or_else(illegal)?;
        let (real, imaginary) = parse_float(real)
            .zip(parse_float(imaginary))
            .ok_or_else(illegal)?;
        Ok(Self::complex(text, real, imaginary))
    }

    /// Parses `'a'`.
    pub fn parse_character(text: &'a str) -> Result<Self, String> {
        let malformed = || format!("malformed character constant: {text}");
        let body = text
            .strip_prefix('\'')
            .and_then(|body| body.strip_suffix('\''));
        let body = body.ok_or_else(malformed)?;
        let (character, rest) = unquote_one(body, '\'').ok_or_else(malformed)?;
        if !rest.is_empty() {
            return Err(malformed());
        }
        let code = match character {
            UnquotedChar::Byte(byte) => i64::from(byte),
            UnquotedChar::Char(character) => i64::from(u32::from(character)),
        };
        Ok(Self::real(text, Some(code), code as f64))
    }

    /// Returns whether a parameter of any type gets it as a float64. The spelling determines that.
    #[must_use]
    pub fn is_float(&self) -> bool {
        let is_hexadecimal = self
            .text
            .get(..2)
            .is_some_and(|x| x.eq_ignore_ascii_case("0x"));
        let is_hexadecimal = is_hexadecimal && !self.text.contains(['p', 'P']);
        !is_hexadecimal
            && !self.text.starts_with('\'')
            && self.text.contains(['.', 'e', 'E', 'p', 'P'])
    }
}

/// Parses a number with point and exponent, decimal or (with `p`) hexadecimal.
fn parse_float(text: &str) -> Option<f64> {
    let text = without_underscores(text)?;
    if text.to_ascii_lowercase().contains("0x") {
        return hexadecimal::parse(&text);
    }
    if !text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// A character of a constant, or a byte from an escape sequence.
enum UnquotedChar {
    Byte(u8),
    Char(char),
}

/// Returns the text of a string constant: Go's `strconv.Unquote`.
///
/// # Errors
/// An unknown escape sequence, or bytes that are not UTF-8.
pub fn unquote(written: &str) -> Result<String, String> {
    let invalid = || format!("invalid syntax in the string {written}");
    if let Some(raw) = written.strip_prefix('`') {
        return Ok(raw.strip_suffix('`').ok_or_else(invalid)?.replace('\r', ""));
    }
    let body = written
        .strip_prefix('"')
        .and_then(|body| body.strip_suffix('"'));
    let mut rest = body.ok_or_else(invalid)?;
    let mut bytes = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let (unquoted, after) = unquote_one(rest, '"').ok_or_else(invalid)?;
        match unquoted {
            UnquotedChar::Byte(byte) => bytes.push(byte),
            UnquotedChar::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| format!("the string {written} is not UTF-8"))
}

/// Reads the first character of `text`, which may be an escape sequence. Returns it and the rest.
fn unquote_one(text: &str, quote: char) -> Option<(UnquotedChar, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == quote {
        return None;
    }
    if first != '\\' {
        return Some((UnquotedChar::Char(first), chars.as_str()));
    }
    let escape = chars.next()?;
    let rest = chars.as_str();
    let simple = |c| Some((UnquotedChar::Char(c), rest));
    let (digits, radix) = match escape {
        'a' => return simple('\x07'),
        'b' => return simple('\x08'),
        'f' => return simple('\x0c'),
        'n' => return simple('\n'),
        'r' => return simple('\r'),
        't' => return simple('\t'),
        'v' => return simple('\x0b'),
        '\\' => return simple('\\'),
        '\'' | '"' => {
            return if escape == quote {
                simple(escape)
            } else {
                None
            };
        }
        'x' => (2, 16),
        'u' => (4, 16),
        'U' => (8, 16),
        '0'..='7' => (3, 8),
        _ => return None,
    };
    // The first octal digit is the character after the backslash itself.
    let rest = if radix == 8 { text.get(1..)? } else { rest };
    let (code, rest) = rest.split_at_checked(digits)?;
    if !code.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let code = u32::from_str_radix(code, radix).ok()?;
    let unquoted = match escape {
        'u' | 'U' => UnquotedChar::Char(char::from_u32(code)?),
        _ => UnquotedChar::Byte(u8::try_from(code).ok()?),
    };
    Some((unquoted, rest))
}
