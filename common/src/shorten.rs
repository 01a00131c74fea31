//! Shortens texts to a maximum length.

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
