//! Parses hexadecimal floating-point numbers as Go's strconv does.

use super::number::split_sign;

/// Bits of a float64's mantissa, without the first one.
const MANTISSA: i64 = 52;
/// Exponent of the smallest number above 0.
const SMALLEST: i64 = -1074;
/// Maximum number of significant digits that are read of an exponent.
const EXPONENT_DIGITS: usize = 9;

/// Parses `-0x1.8p-3`; the exponent is required. Rounds once, halves to even. Returns `None` for a number that is invalid or too large.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let (is_negative, text) = split_sign(text);
    let text = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))?;
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut exponent = read_exponent(exponent)?;
    exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    let mut mantissa = 0_u64;
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(digit.to_digit(16)?);
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
        } else {
            // Of the bits that do not fit, it only matters whether one of them is set.
            mantissa |= u64::from(digit != 0);
            exponent += 4;
        }
    }
    let number = scale(mantissa, exponent);
    let number = if is_negative { -number } else { number };
    number.is_finite().then_some(number)
}

/// Reads digits with an optional sign. An exponent beyond all floats is cut, but stays beyond them.
fn read_exponent(text: &str) -> Option<i64> {
    let (is_negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    let exponent: i64 = match significant.get(..EXPONENT_DIGITS) {
        Some(first) => first.parse().ok()?,
        None => significant.parse().unwrap_or(0),
    };
    Some(if is_negative { -exponent } else { exponent })
}

/// `mantissa * 2^exponent`.
fn scale(mantissa: u64, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let highest = i64::from(mantissa.ilog2()) + exponent;
    if highest > 1023 {
        return f64::INFINITY;
    }
    // Exponent of the last bit that fits into the float.
    let last = (highest - MANTISSA).max(SMALLEST);
    let mantissa = u128::from(mantissa);
    let digits = match u32::try_from(last - exponent) {
        Err(_) => mantissa << (exponent - last).unsigned_abs(),
        Ok(65..) => 0,
        Ok(0) => mantissa,
        Ok(shift) => {
            let (kept, rest) = (mantissa >> shift, mantissa & ((1 << shift) - 1));
            let half = 1 << (shift - 1);
            kept + u128::from(rest > half || rest == half && kept % 2 == 1)
        }
    };
    digits as f64 * power_of_two(last)
}

/// `2^exponent` for an exponent from [`SMALLEST`] to 1023.
fn power_of_two(exponent: i64) -> f64 {
    let bits = match exponent + 1023 {
        biased @ 1.. => biased.unsigned_abs() << MANTISSA,
        _ => 1 << (exponent - SMALLEST).unsigned_abs(),
    };
    f64::from_bits(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go's `strconv.ParseFloat` answers.
    #[test]
    fn numbers_are_rounded_once() {
        for (text, number) in [
            ("0x1.8p3", Some(12.0)),
            ("-0X.8P+1", Some(-1.0)),
            ("0x10.p0", Some(16.0)),
            ("0x1p-1074", Some(5e-324)),
            ("0x1p-1075", Some(0.0)),
            ("0x1.8p-1075", Some(5e-324)),
            ("0x1p-1030", Some(8.691694759794e-311)),
            ("0x1.fffffffffffff8p3", Some(16.0)),
            ("0x1.00000000000008p0", Some(1.0)),
            (
                "0x1.000000000000080000000000001p0",
                Some(1.0 + f64::EPSILON),
            ),
            ("0x1.fffffffffffffp1023", Some(f64::MAX)),
            ("0x1p1024", None),
            ("0x1p99999999999999999999", None),
            ("0x1p-99999999999999999999", Some(0.0)),
            ("0x0p99999999999999999999", Some(0.0)),
            ("0x+1p3", None),
            ("0x1", None),
            ("0x1p", None),
            ("0x1p+-3", None),
            ("0x.p1", None),
            ("0xgp1", None),
        ] {
            assert_eq!(parse(text), number, "{text}");
        }
    }
}
