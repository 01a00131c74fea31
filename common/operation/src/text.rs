//! Pieces of the sentences of errors and findings.

use std::time::Duration;

use common::api::catalogue::ResourceType;

/// `0.1s`, `12.3s`, `2m5s`: how long something took.
#[must_use]
pub fn seconds(elapsed: Duration) -> String {
    let total = elapsed.as_secs();
    if total < 60 {
        format!("{:.1}s", elapsed.as_secs_f64())
    } else {
        format!("{}m{}s", total / 60, total % 60)
    }
}

/// Returns one word of a command, quoted if a shell would not read it literally.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/=@:,+%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Returns the types as a list for a sentence.
#[must_use]
pub fn join_types(types: &[ResourceType]) -> String {
    let names: Vec<String> = types.iter().map(ToString::to_string).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn what_a_shell_would_split_is_quoted() {
        assert_eq!(shell_word("/srv/web"), "/srv/web");
        assert_eq!(shell_word("/srv/it's here"), r"'/srv/it'\''s here'");
        assert_eq!(shell_word(""), "''");
    }
}
