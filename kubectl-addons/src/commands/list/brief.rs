//! Formats a status for a table.

use common::text::shorten;

/// How many characters of a status a table shows.
const MAX_STATUS: usize = 60;

/// Shortens a status to one line of a table. `status` shows it whole.
pub fn shorten_status(status: &str) -> String {
    shorten(one_line(status), MAX_STATUS)
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
        assert_eq!(shorten_status("Ready"), "Ready");
        assert_eq!(shorten_status("Failed: a\n  b"), "Failed: a b");
        let long = shorten_status(&format!("Failed: {}", "é".repeat(80)));
        assert_eq!(long.chars().count(), MAX_STATUS);
        assert!(long.ends_with("é…"), "{long}");
        assert_eq!(one_line("Failed: a\n  b"), "Failed: a b");
    }
}
