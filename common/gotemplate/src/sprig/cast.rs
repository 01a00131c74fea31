//! Converts values of any type to numbers: spf13/cast 1.10, where every failure gives 0.

use std::num::{IntErrorKind, ParseIntError};

use crate::value::number::{parse_integer, without_underscores};
use crate::value::{Value, hexadecimal};

/// `cast.ToInt64`: nil, a list and a dict give 0.
pub(super) fn to_int(value: &Value) -> i64 {
    match value.follow() {
        Value::Int(number) | Value::Int64(number) => *number,
        // As Go converts: a number that is too large becomes negative.
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
    match value.follow() {
        Value::Int(number) | Value::Int64(number) => *number as f64,
        Value::Uint64(number) => *number as f64,
        Value::Byte(number) => f64::from(*number),
        Value::Float(number) => *number,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Text(text) => float_of_text(text),
        _ => 0.0,
    }
}

/// Reads a text as `cast.ToInt64` does: `"1.9"` is 1, `"0x10"` is 16, `"08"` and `"1e3"` are 0.
fn int_of_text(text: &str) -> i64 {
    let number = parse_integer(whole_part(text));
    number
        .and_then(|number| i64::try_from(number).ok())
        .unwrap_or(0)
}

/// Reads a text as `cast.ToFloat64` does.
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

/// Converts as Go does on amd64: towards zero, and to the smallest number if the value does not fit.
fn int_of_float(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// Go's `strconv.Atoi`: 0 for an invalid number, the nearest number for one that is too large.
pub(super) fn atoi(text: &str) -> i64 {
    text.parse()
        .unwrap_or_else(|error: ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => i64::MAX,
            IntErrorKind::NegOverflow => i64::MIN,
            _ => 0,
        })
}

/// Reads a text as an octal number; errors give 0.
pub(super) fn octal(text: &str) -> i64 {
    i64::from_str_radix(text, 8).unwrap_or(0)
}

/// Removes the `.9` of `1.9`; other texts stay as they are.
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
