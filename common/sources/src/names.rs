//! Lists of names in messages, and paths below others.

/// `a, b and 3 more`, at most `most` names; `nothing` for none.
pub fn listed<S: AsRef<str>>(
    names: impl ExactSizeIterator<Item = S>,
    most: usize,
    nothing: &str,
) -> String {
    let more = names.len().saturating_sub(most);
    let shown: Vec<S> = names.take(most).collect();
    let shown: Vec<&str> = shown.iter().map(AsRef::as_ref).collect();
    match (shown.as_slice(), more) {
        ([], _) => nothing.to_owned(),
        (shown, 0) => shown.join(", "),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Whether `path` is `folder` or below it; everything is below the empty folder.
pub fn is_within(path: &str, folder: &str) -> bool {
    match path.strip_prefix(folder) {
        Some(rest) => folder.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_short() {
        for (names, expected) in [
            (&[][..], "none"),
            (&["a"], "a"),
            (&["a", "b"], "a, b"),
            (&["a", "b", "c", "d"], "a, b and 2 more"),
        ] {
            assert_eq!(listed(names.iter(), 2, "none"), expected);
        }
    }
}
