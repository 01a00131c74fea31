//! Formats a status for a table.

use common::shorten::shortened;

/// How many characters of a status a table shows.
const SHOWN: usize = 60;

/// Shortens a status to one line of a table. `status` shows it whole.
pub fn brief(status: &str) -> String {
    shortened(one_line(status), SHOWN)
}

/// Removes line breaks from a status.
pub fn one_line(status: &str) -> String {
    status.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_short_line_in_a_table() {
        assert_eq!(brief("Ready"), "Ready");
        assert_eq!(brief("Failed: a\n  b"), "Failed: a b");
        let long = brief(&format!("Failed: {}", "é".repeat(80)));
        assert_eq!(long.chars().count(), SHOWN);
        assert!(long.ends_with("é…"), "{long}");
        assert_eq!(one_line("Failed: a\n  b"), "Failed: a b");
    }
}
