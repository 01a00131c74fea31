//! The text of messages: the causes of an error in plain words, text from other sources escaped, and cells padded.

use common::causes::strip_library_prefixes;
use common::foreign::escape_controls;

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
    kept = strip_library_prefixes(&kept);
    for (system, ours) in CAUSES {
        kept = kept.replace(system, ours);
    }
    kept
}

/// Escapes text from other sources (a catalogue, a manifest, a server): control characters other than line breaks and tabs, and characters
/// that change the direction of the text.
pub fn escape_text(text: &str) -> String {
    escape_controls(text)
}

/// Pads text to a width. The formatter of the standard library panics above a width of 65,535, and text from a catalogue or an object may
/// be longer.
pub fn pad_text(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
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

    #[test]
    fn text_of_others_does_not_steer_the_terminal() {
        assert_eq!(
            escape_text("a\u{1b}[31m\r\n\tb\u{9b}2J \u{202e}c\u{7}\u{7f}ä"),
            "a\\u001b[31m\\u000d\n\tb\\u009b2J \\u202ec\\u0007\\u007fä"
        );
    }
}
