//! Bytes as hex digits, texts of a maximum length, lists that name only the first items and count the rest, and lines that are joined.

use std::fmt::Display;

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

/// Returns the first items and how many more there are: `a, b and 2 more`.
pub fn list_first<I>(items: I, limit: usize) -> String
where
    I: IntoIterator<Item: ToString, IntoIter: ExactSizeIterator>,
{
    let items = items.into_iter();
    let rest = items.len().saturating_sub(limit);
    let named: Vec<String> = items.take(limit).map(|item| item.to_string()).collect();
    format!("{}{}", named.join(", "), and_more(rest))
}

/// Returns ` and 2 more`, or nothing if there are none.
#[must_use]
pub fn and_more(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!(" and {count} more"),
    }
}

/// How many names [`join_equal`] lists before it counts the rest.
const MOST_JOINED: usize = 3;

/// Returns a line `NAME: TEXT` for each text. Names with the same text share a line: `a, b, c and 19 more: TEXT`.
pub fn join_equal<N, T>(lines: impl IntoIterator<Item = (N, T)>) -> Vec<String>
where
    N: ToString,
    T: PartialEq + Display,
{
    let mut groups: Vec<(T, Vec<String>)> = Vec::new();
    for (name, text) in lines {
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name.to_string()),
            None => groups.push((text, vec![name.to_string()])),
        }
    }
    let groups = groups.into_iter();
    groups
        .map(|(text, names)| format!("{}: {text}", list_first(names, MOST_JOINED)))
        .collect()
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

    #[test]
    fn names_with_the_same_text_share_a_line() {
        let rows = ["a", "b", "c", "d", "e"].map(|name| (name, "no"));
        let lines = join_equal([("x", "yes")].into_iter().chain(rows).chain([("y", "yes")]));
        assert_eq!(lines, ["x, y: yes", "a, b, c and 2 more: no"]);
    }

    #[test]
    fn what_is_not_listed_is_counted() {
        assert_eq!(list_first([""; 0], 2), "");
        assert_eq!(list_first(["a", "b"], 2), "a, b");
        assert_eq!(list_first(["a", "b", "c", "d"], 2), "a, b and 2 more");
    }
}
