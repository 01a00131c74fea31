//! The release name of a chart. It never changes, because names of objects contain it.

use common::api::names::{hex_prefix, is_object_name};

/// Maximum length that helm accepts. It leaves room for suffixes: many names are limited to 63 characters.
pub const MAX_LENGTH: usize = 53;
/// Number of digits of the hash at the end of a shortened name (KKP shortens the same way).
const HASH: usize = 9;

/// The name is not valid for helm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "template.helm.releaseName {name:?} is not a valid release name: at most {MAX_LENGTH} lower-case letters, digits, - and ."
)]
pub struct ReleaseNameError {
    /// The name in the catalogue.
    pub name: String,
}

/// Returns the name in the catalogue, else the name of the installation, shortened if it is too long.
///
/// # Errors
/// The name in the catalogue is not valid. It is not shortened, because it would differ from the requested one.
pub fn release_name(set: Option<&str>, installation: &str) -> Result<String, ReleaseNameError> {
    match set {
        Some(name) if name.len() <= MAX_LENGTH && is_object_name(name) => Ok(name.to_owned()),
        Some(name) => Err(ReleaseNameError {
            name: name.to_owned(),
        }),
        None => Ok(shorten(installation)),
    }
}

fn shorten(installation: &str) -> String {
    if installation.len() <= MAX_LENGTH {
        return installation.to_owned();
    }
    let room = MAX_LENGTH - HASH - 1;
    let kept = installation.get(..room).unwrap_or_default();
    let kept = kept.trim_end_matches(['-', '.']);
    format!("{kept}-{}", hex_prefix(installation.as_bytes(), HASH))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes were computed with `printf NAME | sha256sum`.
    #[test]
    fn names_are_stable_and_short() {
        let long = "a".repeat(54);
        let dotted = format!("{}.{}", "a".repeat(42), "b".repeat(20));
        for (set, installation, expected) in [
            (None, "metrics-server", Some("metrics-server")),
            (
                None,
                "alb-ssl-ingress-1f2e3d4c",
                Some("alb-ssl-ingress-1f2e3d4c"),
            ),
            (None, &"a".repeat(53), Some(&*"a".repeat(53))),
            (
                None,
                &long,
                Some("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-a3f01b693"),
            ),
            (
                None,
                &dotted,
                Some("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-c7e23293c"),
            ),
            (Some("ms"), "metrics-server", Some("ms")),
            (Some("MS"), "metrics-server", None),
            (Some(""), "metrics-server", None),
            (Some(&long), "metrics-server", None),
            (Some("a_b"), "metrics-server", None),
        ] {
            let name = release_name(set, installation);
            assert_eq!(name.as_deref().ok(), expected, "{set:?} {installation}");
            if let Ok(name) = name {
                assert!(name.len() <= MAX_LENGTH && is_object_name(&name), "{name}");
            }
        }
    }
}
