//! Kubernetes quantities (apimachinery `resource.Quantity`), parsed only to compare two of them.

/// Parses a quantity. Returns `None` if it is not valid.
pub(super) fn parse(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 13] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
    ];
    let text = text.trim();
    // Before the suffixes: `1e3` and `1E3` are numbers, `1E` is not.
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let mut suffixes = SUFFIXES.iter();
    suffixes.find_map(|(suffix, factor)| {
        let number: f64 = text.strip_suffix(suffix)?.parse().ok()?;
        Some(number * factor)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_compared() {
        for (text, wanted) in [
            ("1Gi", Some(1_073_741_824.0)),
            ("1024Mi", Some(1_073_741_824.0)),
            ("1.5G", Some(1.5e9)),
            ("1e3", Some(1000.0)),
            ("1E", Some(1e18)),
            ("500m", Some(0.5)),
            ("big", None),
        ] {
            assert_eq!(parse(text), wanted, "{text}");
        }
    }
}
