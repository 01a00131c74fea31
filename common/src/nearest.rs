//! Finds the name that a misspelt one probably means, and asks whether it was meant.

/// The maximum length of names that are compared, because the cost of an edit distance is the product of both lengths.
const MAX_LENGTH: usize = 128;

/// Up to this length, a name with two different letters is another word, unless the first letter is equal: `hots` means host, but
/// `nope` does not mean gone.
const SHORT: usize = 6;

/// Returns the candidate closest to `name`, if at most a third of its letters differ.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    let limit = name.chars().count().div_ceil(3);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= MAX_LENGTH)
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .filter(|(distance, candidate)| {
            let is_short = name.chars().count() <= SHORT;
            !is_short || *distance <= 1 || name.chars().next() == candidate.chars().next()
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns the end of a message about an unknown name, `; did you mean web?`. Empty if no name is similar.
#[must_use]
pub fn did_you_mean(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean {near}?"))
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
            ("wbe", "web", Some("web")),
            ("bew", "web", None),
        ] {
            assert_eq!(nearest(name, [known]), expected, "{name}");
        }
    }
}
