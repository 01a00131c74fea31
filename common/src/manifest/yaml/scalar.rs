//! Resolves YAML 1.1 scalars as go-yaml v2 does (`resolve.go`).

use std::borrow::Cow;

use base64::Engine as _;
use serde_json::{Number, Value};

use super::FloatReading;
use super::error::YamlProblem;

/// A tag that determines how a scalar is read. Any other tag leaves the text as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarTag {
    Null,
    Bool,
    Int,
    Float,
    Binary,
    Text,
}

/// A resolved scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum YamlScalar<'a> {
    Null,
    Bool(bool),
    Integer(Number),
    Float(f64, Cow<'a, str>),
    Text(Cow<'a, str>),
}

/// Reads a scalar. `tag` is `None` for a plain scalar without a tag.
pub(super) fn resolve<'a>(
    text: Cow<'a, str>,
    tag: Option<ScalarTag>,
) -> Result<YamlScalar<'a>, YamlProblem> {
    let wanted = match tag {
        None => return Ok(resolve_plain(text)),
        Some(ScalarTag::Text) => return Ok(YamlScalar::Text(text)),
        Some(ScalarTag::Binary) => return decode_binary(&text),
        Some(wanted) => wanted,
    };
    match (resolve_plain(text), wanted) {
        (scalar @ YamlScalar::Null, ScalarTag::Null)
        | (scalar @ YamlScalar::Bool(_), ScalarTag::Bool)
        | (scalar @ YamlScalar::Integer(_), ScalarTag::Int | ScalarTag::Float)
        | (scalar @ YamlScalar::Float(..), ScalarTag::Float) => Ok(scalar),
        _ => Err(YamlProblem::Tag(match wanted {
            ScalarTag::Null => "null",
            ScalarTag::Bool => "bool",
            ScalarTag::Int => "int",
            _ => "float",
        })),
    }
}

impl YamlScalar<'_> {
    /// Converts to a JSON value.
    pub(super) fn into_value(self, floats: FloatReading) -> Result<Value, YamlProblem> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Integer(number) => Value::Number(number),
            Self::Float(_, text) if floats == FloatReading::Text => {
                Value::String(text.into_owned())
            }
            Self::Float(float, _) => Value::Number(to_number(float).ok_or(YamlProblem::NotFinite)?),
            Self::Text(text) => Value::String(text.into_owned()),
        })
    }
}

impl<'a> YamlScalar<'a> {
    /// Converts to a key: numbers and booleans become text (`yes:` is the key `"true"`).
    pub(super) fn into_key(self) -> Result<Cow<'a, str>, YamlProblem> {
        Ok(match self {
            Self::Null => return Err(YamlProblem::KeyNull),
            Self::Bool(true) => Cow::Borrowed("true"),
            Self::Bool(false) => Cow::Borrowed("false"),
            Self::Integer(number) => Cow::Owned(number.to_string()),
            Self::Float(float, _) => Cow::Owned(float_key(float)?),
            Self::Text(text) => text,
        })
    }
}

/// Converts the value of an alias to a key.
pub(super) fn value_to_key(value: &Value) -> Result<String, YamlProblem> {
    match value {
        Value::Null => Err(YamlProblem::KeyNull),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => float_key(float),
            _ => Ok(number.to_string()),
        },
        Value::String(text) => Ok(text.clone()),
        Value::Array(_) | Value::Object(_) => Err(YamlProblem::KeyNotText),
    }
}

/// Reads a scalar without quotes and tag.
fn resolve_plain(text: Cow<'_, str>) -> YamlScalar<'_> {
    // In nearly all cases, the first byte shows that this is text.
    match text.as_bytes().first() {
        None => YamlScalar::Null,
        Some(b'0'..=b'9' | b'+' | b'-' | b'.') => resolve_number(text),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => {
            resolve_word(text)
        }
        Some(_) => YamlScalar::Text(text),
    }
}

fn resolve_word(text: Cow<'_, str>) -> YamlScalar<'_> {
    match text.as_ref() {
        "~" | "null" | "Null" | "NULL" => YamlScalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            YamlScalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            YamlScalar::Bool(false)
        }
        _ => YamlScalar::Text(text),
    }
}

fn resolve_number(text: Cow<'_, str>) -> YamlScalar<'_> {
    match text.as_ref() {
        ".nan" | ".NaN" | ".NAN" => return YamlScalar::Float(f64::NAN, text),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return YamlScalar::Float(f64::INFINITY, text);
        }
        "-.inf" | "-.Inf" | "-.INF" => return YamlScalar::Float(f64::NEG_INFINITY, text),
        _ => {}
    }
    // Underscores are dropped wherever they occur, unless the number begins with a point.
    let digits = if !text.starts_with('.') && text.contains('_') {
        Cow::Owned(text.replace('_', ""))
    } else {
        Cow::Borrowed(text.as_ref())
    };
    if let Some(number) = parse_integer(&digits) {
        return YamlScalar::Integer(number);
    }
    if is_float(&digits)
        && let Ok(float) = digits.parse::<f64>()
        && float.is_finite()
    {
        return YamlScalar::Float(float, text);
    }
    YamlScalar::Text(text)
}

/// Go's `strconv.ParseInt(s, 0, 64)`, then `ParseUint`: `0x`, `0o`, `0b`, and a leading zero for octal.
fn parse_integer(text: &str) -> Option<Number> {
    let (negative, signed, digits) = match text.as_bytes().first()? {
        b'-' => (true, true, text.get(1..)?),
        b'+' => (false, true, text.get(1..)?),
        _ => (false, false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', _, ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', _, ..] => (2, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // Rust would accept a second sign.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(Number::from);
    }
    if signed && i64::try_from(magnitude).is_err() {
        return None;
    }
    Some(Number::from(magnitude))
}

/// go-yaml's `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`.
fn is_float(text: &str) -> bool {
    let digits = |bytes: &[u8]| {
        bytes
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut rest = text.as_bytes();
    if let [b'-' | b'+', tail @ ..] = rest {
        rest = tail;
    }
    let whole = digits(rest);
    rest = rest.get(whole..).unwrap_or_default();
    if let [b'.', tail @ ..] = rest {
        let fraction = digits(tail);
        if whole == 0 && fraction == 0 {
            return false;
        }
        rest = tail.get(fraction..).unwrap_or_default();
    } else if whole == 0 {
        return false;
    }
    match rest {
        [] => true,
        [b'e' | b'E', b'-' | b'+', exponent @ ..] | [b'e' | b'E', exponent @ ..] => {
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
        _ => false,
    }
}

/// Converts a float to a JSON number. Like in Go, a float without a fraction becomes an integer, so `replicas: 1.0` is valid for the API
/// server.
fn to_number(float: f64) -> Option<Number> {
    let negative_zero = float == 0.0 && float.is_sign_negative();
    if float.fract() == 0.0 && float.abs() < 9_223_372_036_854_775_808.0 && !negative_zero {
        // Exact, because an integral float is below 2^63.
        return Some(Number::from(float as i64));
    }
    Number::from_f64(float)
}

/// Go's `strconv.FormatFloat(f, 'g', -1, 64)`: with an exponent below 1e-4 and from 1e6 on. The original silently rounds to 32 bits first.
fn float_key(float: f64) -> Result<String, YamlProblem> {
    if !float.is_finite() {
        return Err(YamlProblem::NotFinite);
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return Ok(float.to_string());
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    Ok(format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs()))
}

/// Decodes `!!binary` to the encoded text. The original silently replaces bytes that are not text.
fn decode_binary(text: &str) -> Result<YamlScalar<'static>, YamlProblem> {
    let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(compact)
        .map_err(|_| YamlProblem::Binary)?;
    String::from_utf8(bytes)
        .map(|text| YamlScalar::Text(Cow::Owned(text)))
        .map_err(|_| YamlProblem::Binary)
}
