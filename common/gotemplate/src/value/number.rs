//! Parses and formats numbers as Go's strconv does.

use std::borrow::Cow;
use std::iter;

/// More decimal places than any float has: the smallest one ends 1074 digits after the point. Further zeros are appended by hand, because
/// the formatter of the standard library panics above 65,535 places and Go allows a million.
const MOST_PLACES: usize = 1100;

/// Notations of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatStyle {
    /// `%f`: 1.500000
    Fixed,
    /// `%e`: 1.500000e+00
    Exponent,
    /// `%g`: like `%e` if the exponent is below -4 or not below the precision, else like `%f`, without trailing zeros.
    General,
}

/// Formats `number` in `style` with `precision` digits; without a precision, as the shortest text that reads back as `number`. Go's `%v` is
/// the general style without precision: `1000000.0` is `1e+06`, `1000000.5` is `1.0000005e+06`.
pub(crate) fn format_float(number: f64, style: FloatStyle, precision: Option<usize>) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    match (style, precision) {
        (FloatStyle::Fixed, Some(precision)) => fixed(number, precision),
        (FloatStyle::Fixed, None) => format!("{number}"),
        (FloatStyle::Exponent, Some(precision)) => go_exponent(&exponent(number, precision)),
        (FloatStyle::Exponent, None) => go_exponent(&format!("{number:e}")),
        (FloatStyle::General, None) => {
            let scientific = format!("{number:e}");
            match exponent_of(&scientific) {
                -4..=5 => format!("{number}"),
                _ => go_exponent(&scientific),
            }
        }
        (FloatStyle::General, Some(precision)) => general(number, precision.max(1)),
    }
}

/// `%.Ng`
fn general(number: f64, precision: usize) -> String {
    let scientific = exponent(number, precision - 1);
    let exponent = exponent_of(&scientific);
    let (mantissa, _) = scientific.split_once('e').unwrap_or((&scientific, ""));
    let mantissa = without_zeros(mantissa);
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    // Without a fraction, a number is written without exponent as long as its digits fit the precision.
    let point = exponent + 1;
    let limit = match i64::try_from(digits) {
        Ok(digits) if precision > digits as usize && digits >= point => digits,
        _ => i64::try_from(precision).unwrap_or(i64::MAX),
    };
    if exponent < -4 || exponent >= limit {
        return go_exponent(&format!("{mantissa}e{exponent}"));
    }
    let places = i64::try_from(precision).unwrap_or(i64::MAX) - point;
    let places = usize::try_from(places).unwrap_or_default();
    without_zeros(&fixed(number, places)).to_owned()
}

/// `12.500`
fn fixed(number: f64, places: usize) -> String {
    let exact = places.min(MOST_PLACES);
    let mut text = format!("{number:.exact$}");
    text.extend(iter::repeat_n('0', places - exact));
    text
}

/// `1.2500e1`
fn exponent(number: f64, places: usize) -> String {
    let exact = places.min(MOST_PLACES);
    let mut text = format!("{number:.exact$e}");
    if let Some(end) = text.find('e').filter(|_| places > exact) {
        text.insert_str(end, &"0".repeat(places - exact));
    }
    text
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

fn exponent_of(scientific: &str) -> i64 {
    let exponent = scientific.split_once('e').map(|(_, exponent)| exponent);
    exponent
        .and_then(|exponent| exponent.parse().ok())
        .unwrap_or_default()
}

/// Converts `1.5e7` to `1.5e+07`.
fn go_exponent(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Splits off an optional sign. Returns whether the number is negative, and the rest.
pub(crate) fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Go's `strconv.ParseInt` and `ParseUint` with base 0: a whole number with an optional sign, the prefixes `0x`, `0o`, `0b`
/// and `0`, and underscores between digits. `None` below the range of int64 and above that of uint64.
pub(crate) fn parse_integer(text: &str) -> Option<i128> {
    let (is_negative, unsigned) = split_sign(text);
    let (radix, digits) = match unsigned.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, unsigned.get(2..)?),
        Some("0o") => (8, unsigned.get(2..)?),
        Some("0b") => (2, unsigned.get(2..)?),
        Some(octal) if octal.starts_with('0') => (8, unsigned.get(1..)?),
        _ => (10, unsigned),
    };
    without_underscores(unsigned)?;
    let digits = digits.replace('_', "");
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let value = i128::from(u64::from_str_radix(&digits, radix).ok()?);
    let value = if is_negative { -value } else { value };
    (value >= i128::from(i64::MIN)).then_some(value)
}

/// Removes the underscores of a number. Returns `None` if one of them does not separate digits; a prefix like `0x` counts as a digit (Go's
/// `underscoreOK`).
pub(crate) fn without_underscores(number: &str) -> Option<Cow<'_, str>> {
    if !number.contains('_') {
        return Some(Cow::Borrowed(number));
    }
    let (_, unsigned) = split_sign(number);
    let prefixed = unsigned
        .strip_prefix('0')
        .and_then(|rest| rest.strip_prefix(['x', 'X', 'o', 'O', 'b', 'B']));
    let is_hexadecimal = prefixed.is_some() && matches!(unsigned.as_bytes(), [_, b'x' | b'X', ..]);
    let is_digit = |c: char| c.is_ascii_digit() || is_hexadecimal && c.is_ascii_hexdigit();
    let mut after_digit = prefixed.is_some();
    let mut after_underscore = false;
    for c in prefixed.unwrap_or(unsigned).chars() {
        let fits = match c {
            '_' => after_digit,
            c => is_digit(c) || !after_underscore,
        };
        if !fits {
            return None;
        }
        (after_digit, after_underscore) = (is_digit(c), c == '_');
    }
    (!after_underscore).then(|| Cow::Owned(number.replace('_', "")))
}
