//! Functions for durations, written as Go does: `1h2m3s`.

use super::cast::atoi;
use crate::function::Function;
use crate::value::Type::Any;
use crate::value::Value;
use crate::value::number::split_sign;

pub(super) const DURATIONS: &[Function<'static>] = &[
    Function::new("duration", &[Any], &|_, args| {
        let seconds = match args.value(0) {
            Value::Int64(seconds) => *seconds,
            Value::Text(text) => atoi(text),
            _ => 0,
        };
        Ok(Value::text(format_duration(seconds)))
    }),
    Function::new("durationRound", &[Any], &|_, args| {
        let nanoseconds = match args.value(0) {
            Value::Int64(nanoseconds) => *nanoseconds,
            Value::Text(text) => parse_duration(text).unwrap_or_default(),
            _ => 0,
        };
        Ok(Value::text(format_largest_unit(nanoseconds.unsigned_abs())))
    }),
];

const SECOND: u64 = 1_000_000_000;

/// Formats whole seconds as Go's `time.Duration`: `1h2m3s`.
fn format_duration(seconds: i64) -> String {
    // Nanoseconds wrap around, as in Go.
    let nanoseconds = seconds.wrapping_mul(SECOND.cast_signed());
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    let (whole, rest) = (total / SECOND, total % SECOND);
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    let mut fraction = String::new();
    if rest > 0 {
        fraction = format!(".{rest:09}");
        fraction.truncate(fraction.trim_end_matches('0').len());
    }
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}{fraction}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}{fraction}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

/// Formats a duration in the largest unit that is shorter than it.
fn format_largest_unit(nanoseconds: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (365 * 24 * 3600, "y"),
        (30 * 24 * 3600, "mo"),
        (24 * 3600, "d"),
        (3600, "h"),
        (60, "m"),
        (1, "s"),
    ];
    let unit = UNITS
        .iter()
        .find(|(seconds, _)| nanoseconds > seconds * SECOND);
    match unit {
        Some((seconds, unit)) => format!("{}{unit}", nanoseconds / (seconds * SECOND)),
        None => "0s".to_owned(),
    }
}

/// Parses a duration as Go's `time.ParseDuration`: `-1h1.5m`.
fn parse_duration(text: &str) -> Option<i64> {
    let (is_negative, mut rest) = split_sign(text);
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_i128;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(end);
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, behind) = behind.split_at(end.unwrap_or(behind.len()));
        let unit = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => i128::from(SECOND),
            "m" => 60 * i128::from(SECOND),
            "h" => 3600 * i128::from(SECOND),
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let fraction = fraction.get(..fraction.len().min(18))?;
        // A leading zero changes no number, and turns an empty text into one.
        let whole: i64 = format!("0{whole}").parse().ok()?;
        let part: i128 = format!("0{fraction}").parse().ok()?;
        let parts = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
        total += i128::from(whole) * unit + part * unit / parts;
        if total > i128::from(i64::MAX) {
            return None;
        }
        if behind.is_empty() {
            let total = if is_negative { -total } else { total };
            return i64::try_from(total).ok();
        }
        rest = behind;
    }
}
