//! The typed words. bash splits them at `@`, and replaces only the part after it.

use std::ffi::OsString;

/// Joins `NAME`, `@` and `VERSION` to one word, and returns how many bytes of the last word the shell keeps.
pub fn join_words(words: &[OsString]) -> (Vec<OsString>, usize) {
    let mut joined: Vec<OsString> = Vec::new();
    let mut kept = 0;
    let mut goes_on = false;
    for word in words {
        let text = word.to_string_lossy();
        let is_at = word == "@";
        match joined.last_mut() {
            Some(last) if is_at && !last.is_empty() && !goes_on => {
                kept = last.len();
                last.push("@");
            }
            Some(last) if goes_on => last.push(text.strip_prefix('@').unwrap_or(&text)),
            _ => {
                kept = 0;
                joined.push(word.clone());
            }
        }
        goes_on = is_at && !goes_on;
    }
    (joined, kept)
}

/// Returns the name if `NAME@VERSION` is being typed.
pub fn unfinished_name(words: &[String]) -> Option<&str> {
    let (name, _) = words.last()?.split_once('@')?;
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bash_splits_is_joined() {
        for (words, expected, kept) in [
            (&["show", "web"][..], &["show", "web"][..], 0),
            (&["show", "web", "@"], &["show", "web@"], 3),
            (&["show", "web", "@", "1.0"], &["show", "web@1.0"], 3),
            (&["show", "web", "@", "@1.0"], &["show", "web@1.0"], 3),
            (&["show", "web@1.0"], &["show", "web@1.0"], 0),
            (
                &["install", "a", "@", "1", "b"],
                &["install", "a@1", "b"],
                0,
            ),
        ] {
            let words: Vec<OsString> = words.iter().map(Into::into).collect();
            let expected: Vec<OsString> = expected.iter().map(Into::into).collect();
            assert_eq!(join_words(&words), (expected, kept), "{words:?}");
        }
    }
}
