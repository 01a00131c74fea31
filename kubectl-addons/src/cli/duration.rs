//! Parses durations on the command line.

use std::time::Duration;

/// Parses `90s`, `5m`, `1h30m`, `500ms`, or a number of seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a valid duration; write it as 90s, 5m or 1h30m");
    if let Ok(seconds) = text.parse::<u32>()
        && seconds > 0
    {
        return Ok(Duration::from_secs(seconds.into()));
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let number: u32 = number.parse().map_err(|_| wrong())?;
        let letters = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let unit = match unit {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            _ => return Err(wrong()),
        };
        total = unit
            .checked_mul(number)
            .and_then(|part| total.checked_add(part))
            .ok_or_else(wrong)?;
        rest = tail;
    }
    if total.is_zero() {
        Err(wrong())
    } else {
        Ok(total)
    }
}

/// Parses a duration, or kubectl's `0`.
pub fn bound(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s") {
        Ok(Duration::ZERO)
    } else {
        duration(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let seconds = |text| duration(text).map(|duration| duration.as_secs_f64());
        for (text, expected) in [
            ("90s", 90.0),
            ("90", 90.0),
            ("5m", 300.0),
            ("1h30m", 5400.0),
            ("500ms", 0.5),
            ("1m0s", 60.0),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "0",
            "0s",
            "m",
            "5d",
            "-5s",
            "5 m",
            "1.5h",
            "99999999999h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(bound("0"), Ok(Duration::ZERO));
    }
}
