//! Rewrites errors of the operating system in plain words: without numbers, and without the names of libraries.

/// Prefixes that libraries add to a cause.
const NOISE: [&str; 3] = [
    "ServiceError: ",
    "client error (Connect): ",
    "tcp connect error: ",
];
/// Sentences of the operating system, and the words of a message.
const CAUSES: [(&str, &str); 6] = [
    ("No such file or directory", "no such file or directory"),
    ("Permission denied", "permission denied"),
    ("Is a directory", "is a folder, not a file"),
    ("Connection refused", "connection refused"),
    ("Connection reset by peer", "connection reset by peer"),
    ("No space left on device", "no space left on device"),
];
const NUMBER: &str = " (os error ";

/// Replaces these causes in a text.
pub(super) fn replace_causes(text: &str) -> String {
    if !text.contains(NUMBER) {
        return text.to_owned();
    }
    let mut parts = text.split(NUMBER);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.chars().all(|c| c.is_ascii_digit()) => {
                kept.push_str(rest);
            }
            _ => kept = kept + NUMBER + part,
        }
    }
    for noise in NOISE {
        kept = kept.replace(noise, "");
    }
    for (system, ours) in CAUSES {
        kept = kept.replace(system, ours);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_no_number_and_no_library() {
        for (text, expected) in [
            (
                "error: a.yaml: No such file or directory (os error 2)",
                "error: a.yaml: no such file or directory",
            ),
            (
                "error: the server at https://a:1 cannot be reached: ServiceError: client error (Connect): tcp connect error: Connection refused (os error 111)",
                "error: the server at https://a:1 cannot be reached: connection refused",
            ),
            ("a (os error 2) b (os error x)", "a b (os error x)"),
            ("ServiceError: bad", "ServiceError: bad"),
        ] {
            assert_eq!(replace_causes(text), expected);
        }
    }
}
