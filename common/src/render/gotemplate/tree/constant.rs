//! Constants: numbers, characters and texts as Go's strconv reads them.

use std::borrow::Cow;

use super::super::value::hexadecimal;

/// A number that has no type yet: it becomes what a parameter needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number<'a> {
    /// As it is written.
    pub text: &'a str,
    /// Its value where that is whole and fits an int64.
    pub int: Option<i64>,
    /// Its value where that is a real number.
    pub float: Option<f64>,
    /// Its value where it is written as a complex one.
    pub complex: Option<(f64, f64)>,
}

impl<'a> Number<'a> {
    /// `17`, `0x1F`, `1_000`, `1.5e3`, `2i`
    pub fn parse(text: &'a str) -> Result<Self, String> {
        let number = Self {
            text,
            int: None,
            float: None,
            complex: None,
        };
        if let Some(imaginary) = text.strip_suffix('i') {
            let complex = float(imaginary).map(|imaginary| (0.0, imaginary));
            let complex = complex.ok_or_else(|| format!("illegal number syntax: {text:?}"))?;
            return Ok(Self {
                complex: Some(complex),
                ..number
            });
        }
        if let Some(whole) = integer(text) {
            return Ok(Self {
                int: i64::try_from(whole).ok(),
                float: Some(whole as f64),
                ..number
            });
        }
        let float = float(text).ok_or_else(|| format!("illegal number syntax: {text:?}"))?;
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {text:?}"));
        }
        // As far as every whole float64 is exact or at least within an int64.
        let whole = float.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&float);
        Ok(Self {
            int: whole.then_some(float as i64),
            float: Some(float),
            ..number
        })
    }

    /// `1+2i`
    pub fn parse_complex(text: &'a str) -> Result<Self, String> {
        let illegal = || format!("illegal number syntax: {text:?}");
        let body = text.strip_suffix('i').ok_or_else(illegal)?;
        let signs = body
            .char_indices()
            .skip(1)
            .filter(|(_, c)| matches!(c, '+' | '-'));
        // Not the sign of an exponent.
        let mut signs = signs.filter(|(at, _)| {
            let before = body.get(..*at).unwrap_or_default();
            !before.ends_with(['e', 'E', 'p', 'P'])
        });
        let (at, _) = signs.next().ok_or_else(illegal)?;
        let (real, imaginary) = body.split_at_checked(at).ok_or_else(illegal)?;
        let complex = float(real).zip(float(imaginary)).ok_or_else(illegal)?;
        Ok(Self {
            text,
            int: None,
            float: None,
            complex: Some(complex),
        })
    }

    /// `'a'`
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
            Unquoted::Byte(byte) => i64::from(byte),
            Unquoted::Char(character) => i64::from(u32::from(character)),
        };
        Ok(Self {
            text,
            int: Some(code),
            float: Some(code as f64),
            complex: None,
        })
    }

    /// Whether a parameter of any type gets it as a float64: the way it is written decides.
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

/// A whole number with an optional sign and the prefixes `0x`, `0o`, `0b` and `0`.
fn integer(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match unsigned.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, unsigned.get(2..)?),
        Some("0o") => (8, unsigned.get(2..)?),
        Some("0b") => (2, unsigned.get(2..)?),
        Some(octal) if octal.starts_with('0') => (8, unsigned.get(1..)?),
        _ => (10, unsigned),
    };
    if !underscores_separate(unsigned) {
        return None;
    }
    let digits = digits.replace('_', "");
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let value = i128::from(u64::from_str_radix(&digits, radix).ok()?);
    let value = if negative { -value } else { value };
    // Go reads an unsigned number where a signed one does not fit; below that there is none.
    (value >= i128::from(i64::MIN)).then_some(value)
}

/// A number with point and exponent, decimal or (with `p`) hexadecimal.
fn float(text: &str) -> Option<f64> {
    if !underscores_separate(text.strip_prefix(['-', '+']).unwrap_or(text)) {
        return None;
    }
    let text = text.replace('_', "");
    if text.to_ascii_lowercase().contains("0x") {
        return hexadecimal::parse(&text);
    }
    if !text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Whether every `_` stands between digits, where a prefix `0x` counts as one.
fn underscores_separate(number: &str) -> bool {
    if !number.contains('_') {
        return true;
    }
    let body = ["0x", "0X", "0o", "0O", "0b", "0B"]
        .iter()
        .find_map(|prefix| number.strip_prefix(prefix))
        .map_or(Cow::Borrowed(number), |body| Cow::Owned(format!("0{body}")));
    let bytes = body.as_bytes();
    let separates = |window: &[u8]| {
        let [before, at, after] = window else {
            return true;
        };
        *at != b'_' || (before.is_ascii_hexdigit() && after.is_ascii_hexdigit())
    };
    !body.starts_with('_') && !body.ends_with('_') && bytes.windows(3).all(separates)
}

/// One character of a constant: an escape may give a byte that is no character.
enum Unquoted {
    Byte(u8),
    Char(char),
}

/// The text of a string constant: Go's `strconv.Unquote`.
///
/// # Errors
/// An unknown escape, or bytes that are not UTF-8.
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
            Unquoted::Byte(byte) => bytes.push(byte),
            Unquoted::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| format!("the string {written} is not UTF-8"))
}

/// The first character of `text`, which may be an escape, and what follows it.
fn unquote_one(text: &str, quote: char) -> Option<(Unquoted, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == quote {
        return None;
    }
    if first != '\\' {
        return Some((Unquoted::Char(first), chars.as_str()));
    }
    let escape = chars.next()?;
    let rest = chars.as_str();
    let simple = |c| Some((Unquoted::Char(c), rest));
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
            return (escape == quote)
                .then_some(())
                .and_then(|()| simple(escape));
        }
        'x' => (2, 16),
        'u' => (4, 16),
        'U' => (8, 16),
        '0'..='7' => (3, 8),
        _ => return None,
    };
    // The first octal digit is the escape itself.
    let rest = if radix == 8 { text.get(1..)? } else { rest };
    let (code, rest) = rest.split_at_checked(digits)?;
    if !code.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let code = u32::from_str_radix(code, radix).ok()?;
    let unquoted = match escape {
        'u' | 'U' => Unquoted::Char(char::from_u32(code)?),
        _ => Unquoted::Byte(u8::try_from(code).ok()?),
    };
    Some((unquoted, rest))
}
