//! Finds the name that a misspelt one probably means.

/// The maximum length of names that are compared, because the cost of an edit distance is the product of both lengths.
const MAX_LENGTH: usize = 128;

/// Up to this length, a name with two different letters is another word, unless the first letter is equal: `hots` means host, but
/// `nope` does not mean gone.
const SHORT: usize = 6;

/// Returns the candidate closest to `name`, if at most a third of its letters differ.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = name.chars().count().div_ceil(3);
    candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(name, candidate)?, candidate)))
        .filter(|(distance, _)| *distance <= limit)
        .filter(|(distance, candidate)| {
            let is_short = name.chars().count() <= SHORT;
            !is_short || *distance <= 1 || name.chars().next() == candidate.chars().next()
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns how many letters have to be inserted, deleted or replaced, or `None` if a name is too long to compare.
fn distance(a: &str, b: &str) -> Option<usize> {
    if a.len() > MAX_LENGTH || b.len() > MAX_LENGTH {
        return None;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(i + 1);
        for ((right, above), diagonal) in b.iter().zip(row.iter().skip(1)).zip(&row) {
            let exchanged = diagonal + usize::from(left != *right);
            let inserted = next.last().map_or(exchanged, |left| left + 1);
            next.push(exchanged.min(above + 1).min(inserted));
        }
        row = next;
    }
    row.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_found_and_a_foreign_one_is_not() {
        let known = ["prometheus", "cert-manager", "metrics-server"];
        for (name, expected) in [
            ("prometeus", Some("prometheus")),
            ("metric-server", Some("metrics-server")),
            ("certmanager", Some("cert-manager")),
            ("prometheus", Some("prometheus")),
            ("dashboard", None),
            ("", None),
            (&"x".repeat(4096), None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
    }

    #[test]
    fn a_short_name_is_not_taken_for_another_word() {
        for (name, known, expected) in [
            ("nope", "gone", None),
            ("hots", "host", Some("host")),
            ("eb", "web", Some("web")),
        ] {
            assert_eq!(nearest(name, [known]), expected, "{name}");
        }
    }

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("kitten", "sitting", 3),
            ("", "abc", 3),
            ("abc", "", 3),
            ("ä", "a", 1),
        ] {
            assert_eq!(distance(a, b), Some(expected), "{a} {b}");
        }
    }
}
