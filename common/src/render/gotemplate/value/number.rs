//! Floating-point numbers as Go's strconv writes them.

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `%f`: 1.500000
    Fixed,
    /// `%e`: 1.500000e+00
    Exponent,
    /// `%g`: like `%e` where the exponent is below -4 or not below the precision, else like `%f`, without zeros at the end.
    General,
}

/// Go's `%v`: the shortest text that reads back as `number`, with an exponent below 1e-04 and from 1e+06 on:
/// `1000000.0` is `1e+06`, `1000000.5` is `1.0000005e+06`.
#[must_use]
pub fn text(number: f64) -> String {
    format(number, Style::General, None)
}

/// `number` in `style` with `precision` digits; without a precision the shortest text that reads back as the same number.
#[must_use]
pub fn format(number: f64, style: Style, precision: Option<usize>) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    match (style, precision) {
        (Style::Fixed, Some(precision)) => format!("{number:.precision$}"),
        (Style::Fixed, None) => format!("{number}"),
        (Style::Exponent, Some(precision)) => go_exponent(&format!("{number:.precision$e}")),
        (Style::Exponent, None) => go_exponent(&format!("{number:e}")),
        (Style::General, None) => {
            let scientific = format!("{number:e}");
            match exponent_of(&scientific) {
                -4..=5 => format!("{number}"),
                _ => go_exponent(&scientific),
            }
        }
        (Style::General, Some(precision)) => general(number, precision.max(1)),
    }
}

/// `%.Ng`
fn general(number: f64, precision: usize) -> String {
    let scientific = format!("{number:.*e}", precision - 1);
    let exponent = exponent_of(&scientific);
    let (mantissa, _) = scientific.split_once('e').unwrap_or((&scientific, ""));
    let mantissa = without_zeros(mantissa);
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    // A number whose digits all stand before the point needs no exponent as long as there are no more than `precision`.
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
    without_zeros(&format!("{number:.places$}")).to_owned()
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

/// `1.5e7` as `1.5e+07`.
fn go_exponent(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}
