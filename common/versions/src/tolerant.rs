//! Versions as kops reads them, like `ParseTolerant` of blang/semver 4.0.0 (`tests/golden/ranges/kops-tolerant-parse.tsv`).

use semver::{Prerelease, Version};

/// A text that is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid version: {problem}")]
pub struct VersionError {
    /// The text as written.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

impl VersionError {
    pub(super) fn new(text: &str, problem: impl ToString) -> Self {
        Self {
            text: text.to_owned(),
            problem: problem.to_string(),
        }
    }
}

/// Reads a version, such as `1`, `v1.2`, ` 01.2.3 ` or `v1.2.3-rc.1+build`.
///
/// Blanks around the text, one lower-case `v` and leading zeros of the three numbers are dropped. Missing numbers are zero.
///
/// # Errors
/// [`VersionError`] for a missing number, a fourth part, a number over 64 bits, or a pre-release or build after fewer than three
/// numbers.
pub fn parse(text: &str) -> Result<Version, VersionError> {
    let trimmed = text.trim();
    let numbers = trimmed.strip_prefix('v').unwrap_or(trimmed);
    // Nearly all versions are strict, so that nothing has to be dropped.
    if let Ok(version) = Version::parse(numbers) {
        return Ok(version);
    }
    let mut parts: Vec<String> = numbers.splitn(3, '.').map(without_leading_zeros).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['-', '+'])) {
        return Err(VersionError::new(
            text,
            "a pre-release or build needs three numbers before it, as in 1.0.0-rc.1",
        ));
    }
    parts.resize(3, "0".to_owned());
    Version::parse(&parts.join(".")).map_err(|error| VersionError::new(text, error))
}

/// Whether a text is written like a version, and not like a name that could also be read as one: it begins with a digit, or with `v` and a
/// digit.
#[must_use]
pub fn is_version(text: &str) -> bool {
    let digits = text.strip_prefix('v').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit()) && parse(text).is_ok()
}

/// Whether two texts are the same version (semantics 2.1): versions of equal precedence (`v1` and `1.0.0+build`) or, if one of them
/// cannot be read, equal texts.
#[must_use]
pub fn is_same(a: &str, b: &str) -> bool {
    match (parse(a), parse(b)) {
        (Ok(a), Ok(b)) => a.cmp_precedence(&b).is_eq(),
        _ => a.trim() == b.trim(),
    }
}

/// Drops leading zeros: `007` → `7`, `00` → `0`. A zero stays if no digit follows, so that `0-rc.1` keeps its number.
fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        rest.to_owned()
    } else {
        format!("0{rest}")
    }
}

/// Reads the version of a cluster, the `gitVersion` of `/version`, such as `v1.30.4-eks-a737599`, without its pre-release.
///
/// As in kops, a range is compared with 1.30.4, and on `v1.6.0-beta.1` with 1.6.0. Build metadata is kept, but never compared.
///
/// # Errors
/// See [`parse`].
pub fn parse_kubernetes(git_version: &str) -> Result<Version, VersionError> {
    let version = parse(git_version)?;
    Ok(Version {
        pre: Prerelease::EMPTY,
        ..version
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let read = match parse(text) {
            Ok(version) => version.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(read, expect);
    }

    #[test]
    fn versions_are_read_as_kops_does() {
        check(" v01.2 ", "1.2.0");
        check(
            "1.2.0-",
            "\"1.2.0-\" is not a valid version: empty identifier segment in pre-release identifier",
        );
        // T5 of kops-channels §2.
        check(
            "1.0-kops",
            "\"1.0-kops\" is not a valid version: a pre-release or build needs three numbers before it, as in 1.0.0-rc.1",
        );
    }

    #[test]
    fn the_same_version_has_many_spellings() {
        assert!(is_same("v1", "1.0.0+build"));
        assert!(is_same(" latest", "latest"));
        assert!(!is_same("1.0.0", "1.0.0-rc.1"));
    }

    #[test]
    fn the_pre_release_is_dropped() {
        let read = |text| parse_kubernetes(text).unwrap().to_string();
        assert_eq!(read("v1.30.4-eks-a737599"), "1.30.4");
        assert_eq!(read("v1.31.2+k3s1"), "1.31.2+k3s1");
        assert_eq!(read("v1.6.0-beta.1"), "1.6.0");
    }
}
