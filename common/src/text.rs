//! Texts of bytes as hex digits, and texts of a maximum length.

/// Returns bytes as lower-case hex digits.
#[must_use]
pub fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Shortens a text to at most `most` characters. If characters are left out, the last one is `…`.
#[must_use]
pub fn shorten(mut text: String, most: usize) -> String {
    if text.char_indices().nth(most).is_some() {
        let end = text.char_indices().nth(most.saturating_sub(1));
        text.truncate(end.map_or(0, |(end, _)| end));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_two_digits() {
        assert_eq!(encode_hex(&[0x00, 0x0a, 0x5f, 0xff]), "000a5fff");
        assert_eq!(encode_hex(&[]), "");
    }

    #[test]
    fn characters_are_left_out_at_the_end() {
        for (text, most, expected) in [
            ("", 3, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("ééé", 3, "ééé"),
            ("éééé", 3, "éé…"),
            ("ab", 1, "…"),
        ] {
            assert_eq!(shorten(text.to_owned(), most), expected);
        }
    }
}
