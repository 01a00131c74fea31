//! Decimal numbers, with which sprig computes floats (shopspring/decimal 1.4).

/// `digits * 10^exponent`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal {
    digits: i128,
    exponent: i32,
}

/// Decimal places of a quotient.
const QUOTIENT_PLACES: i32 = 16;

impl Decimal {
    /// Returns the shortest decimal that reads as `number`, or `None` for infinity and NaN.
    pub(super) fn new(number: f64) -> Option<Self> {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e')?;
        let places = mantissa
            .split_once('.')
            .map_or(0, |(_, places)| places.len());
        Some(Self {
            digits: mantissa.replace('.', "").parse().ok()?,
            exponent: exponent.parse::<i32>().ok()? - i32::try_from(places).ok()?,
        })
    }

    /// Converts to the nearest float.
    pub(super) fn to_float(self) -> f64 {
        let text = format!("{}e{}", self.digits, self.exponent);
        text.parse().unwrap_or(f64::NAN)
    }

    /// Adds two decimals. `None` if the result does not fit; this applies to all operations below.
    pub(super) fn add(self, other: Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let digits = self
            .digits_at(exponent)?
            .checked_add(other.digits_at(exponent)?)?;
        Some(Self { digits, exponent }.reduce())
    }

    pub(super) fn negate(self) -> Self {
        Self {
            digits: -self.digits,
            ..self
        }
    }

    pub(super) fn multiply(self, other: Self) -> Option<Self> {
        let digits = self.digits.checked_mul(other.digits)?;
        let exponent = self.exponent + other.exponent;
        Some(Self { digits, exponent }.reduce())
    }

    /// Divides, and rounds to [`QUOTIENT_PLACES`], halves away from zero. `other` must not be 0.
    pub(super) fn divide(self, other: Self) -> Option<Self> {
        let shift = self.exponent - other.exponent + QUOTIENT_PLACES;
        let (over, under) = if shift >= 0 {
            (scale(self.digits, shift)?, other.digits)
        } else {
            (self.digits, scale(other.digits, -shift)?)
        };
        let (quotient, rest) = (over.checked_div(under)?, over.checked_rem(under)?);
        let is_half = rest.unsigned_abs() >= under.unsigned_abs() - rest.unsigned_abs();
        let sign = if (over < 0) == (under < 0) { 1 } else { -1 };
        let digits = quotient.checked_add(if is_half { sign } else { 0 })?;
        let exponent = -QUOTIENT_PLACES;
        Some(Self { digits, exponent }.reduce())
    }

    pub(super) fn is_zero(self) -> bool {
        self.digits == 0
    }

    fn digits_at(self, exponent: i32) -> Option<i128> {
        scale(self.digits, self.exponent - exponent)
    }

    /// Removes trailing zeros, so that more digits fit.
    fn reduce(mut self) -> Self {
        if self.digits == 0 {
            self.exponent = 0;
        }
        while self.digits != 0 && self.digits % 10 == 0 {
            self.digits /= 10;
            self.exponent += 1;
        }
        self
    }
}

fn scale(digits: i128, places: i32) -> Option<i128> {
    if digits == 0 {
        return Some(0);
    }
    let factor = 10_i128.checked_pow(u32::try_from(places).ok()?)?;
    digits.checked_mul(factor)
}
