//! Numbers from anything: spf13/cast 1.10, whose every failure is 0.

use std::borrow::Cow;
use std::num::{IntErrorKind, ParseIntError};

use super::super::value::{Value, hexadecimal};

/// `cast.ToInt64`: of nil, a list, a dict 0.
pub(super) fn to_int(value: &Value) -> i64 {
    match value.follow().as_ref() {
        Value::Int(number) | Value::Int64(number) => *number,
        // As Go converts: what is too large comes out negative.
        Value::Uint64(number) => number.cast_signed(),
        Value::Byte(number) => i64::from(*number),
        Value::Float(number) => int_of_float(*number),
        Value::Bool(value) => i64::from(*value),
        Value::Text(text) => int_of_text(text),
        _ => 0,
    }
}

/// `cast.ToFloat64`.
pub(super) fn to_float(value: &Value) -> f64 {
    match value.follow().as_ref() {
        Value::Int(number) | Value::Int64(number) => *number as f64,
        Value::Uint64(number) => *number as f64,
        Value::Byte(number) => f64::from(*number),
        Value::Float(number) => *number,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Text(text) => float_of_text(text),
        _ => 0.0,
    }
}

/// As `cast.ToInt64` reads text: `"1.9"` is 1, `"0x10"` is 16, `"08"` and `"1e3"` are 0.
fn int_of_text(text: &str) -> i64 {
    go_int(whole_part(text)).unwrap_or(0)
}

/// As `cast.ToFloat64` reads text.
fn float_of_text(text: &str) -> f64 {
    let is_named = text.contains(['n', 'N']);
    let Some(digits) = without_underscores(text) else {
        return 0.0;
    };
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() || is_named => number,
        _ => hexadecimal::parse(&digits).unwrap_or_default(),
    }
}

/// Go's conversion on amd64: towards zero, and the smallest number for what does not fit.
fn int_of_float(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// Go's `strconv.Atoi`: 0 for what is no number, the nearest number for what is too large.
pub(super) fn atoi(text: &str) -> i64 {
    text.parse()
        .unwrap_or_else(|error: ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => i64::MAX,
            IntErrorKind::NegOverflow => i64::MIN,
            _ => 0,
        })
}

/// Text as an octal number, with 0 for errors.
pub(super) fn octal(text: &str) -> i64 {
    i64::from_str_radix(text, 8).unwrap_or(0)
}

/// Cuts `.9` off `1.9`; other text stays.
fn whole_part(text: &str) -> &str {
    let Some((whole, fraction)) = text.split_once('.') else {
        return text;
    };
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(digits) || !all_digits(fraction) {
        text
    } else if digits.is_empty() {
        "0"
    } else {
        whole
    }
}

/// `strconv.ParseInt` with base 0: prefixes, and underscores between digits.
fn go_int(text: &str) -> Option<i64> {
    let (is_negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = unsigned.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    // One underscore may stand behind a prefix.
    let digits = match digits.strip_prefix('_') {
        Some(digits) if base != 10 => digits,
        _ => digits,
    };
    let digits = without_underscores(digits)?;
    if digits.starts_with(['-', '+']) {
        return None;
    }
    let sign = if is_negative { "-" } else { "" };
    i64::from_str_radix(&format!("{sign}{digits}"), base).ok()
}

/// Underscores separate digits; `None` where one stands elsewhere.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(Cow::Borrowed(text));
    }
    let is_digit = |part: &str, at_end: bool| {
        let edge = if at_end {
            part.chars().next_back()
        } else {
            part.chars().next()
        };
        edge.is_some_and(|c| c.is_ascii_hexdigit())
    };
    let parts: Vec<_> = text.split('_').collect();
    let is_separated = parts.windows(2).all(|pair| match pair {
        [before, behind] => is_digit(before, true) && is_digit(behind, false),
        _ => true,
    });
    is_separated.then(|| Cow::Owned(parts.concat()))
}
