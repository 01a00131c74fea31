//! Words of a command line that is printed for the user to run.

/// Returns one word of a command, quoted if a shell would not read it literally.
#[must_use]
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/=@:,+%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn what_a_shell_would_split_is_quoted() {
        assert_eq!(word("/srv/web"), "/srv/web");
        assert_eq!(word("/srv/it's here"), r"'/srv/it'\''s here'");
        assert_eq!(word(""), "''");
    }
}
