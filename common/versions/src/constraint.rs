//! Constraints of AddonCatalogues, in the syntax of Masterminds/semver 3.4 and 3.5, which Helm and KKP use
//! (`tests/golden/ranges/masterminds.tsv`).
//!
//! Blanks or commas join comparisons with AND, `||` with OR. `1.2`, `1.2.x` and `~1.2` match every patch version, `^1.2` matches
//! every minor version, and `1.2 - 1.4` is `>=1.2, <=1.4`. A pre-release matches only if a bound in the same AND group has one.
//!
//! One departure: `<2.0 1.1 - 1.3` is an error upstream, which loses the blank before `1.1`; here it is valid.

use std::cmp::Ordering;

use semver::{BuildMetadata, Prerelease, Version};

use super::{RangeError, VersionError};

/// A set of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The groups, one of which must match. A group matches if all its comparisons do.
    alternatives: Vec<Vec<ConstraintComparison>>,
}

/// A comparison, such as `>=1.30`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ConstraintComparison {
    operator: ConstraintOperator,
    bound: PartialVersion,
}

/// A version in which the last numbers may be missing. Missing numbers are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PartialVersion {
    version: Version,
    /// How many numbers precede a wildcard or the end: 0 to 3.
    written: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConstraintOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    GreaterOrEqual,
    Greater,
    Tilde,
    Caret,
}

/// The spellings of operators. Longer ones come first, because the first match is used.
const OPERATORS: [(&str, ConstraintOperator); 11] = [
    ("!=", ConstraintOperator::NotEqual),
    (">=", ConstraintOperator::GreaterOrEqual),
    ("=>", ConstraintOperator::GreaterOrEqual),
    ("<=", ConstraintOperator::LessOrEqual),
    ("=<", ConstraintOperator::LessOrEqual),
    ("~>", ConstraintOperator::Tilde),
    ("~", ConstraintOperator::Tilde),
    ("^", ConstraintOperator::Caret),
    ("=", ConstraintOperator::Equal),
    (">", ConstraintOperator::Greater),
    ("<", ConstraintOperator::Less),
];

impl Constraint {
    /// Reads a constraint.
    ///
    /// # Errors
    /// [`RangeError`], also for an empty text.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        if text.trim_ascii().is_empty() {
            return Err(RangeError::Empty {
                text: text.to_owned(),
            });
        }
        let alternatives = text.split("||").map(|group| parse_comparisons(text, group));
        Ok(Self {
            alternatives: alternatives.collect::<Result<_, _>>()?,
        })
    }

    /// Whether `version` is in the set.
    #[must_use]
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| {
            let pre_releases = all
                .iter()
                .any(|comparison| !comparison.bound.version.pre.is_empty());
            (version.pre.is_empty() || pre_releases)
                && all.iter().all(|comparison| comparison.matches(version))
        })
    }
}

/// Reads a version like Masterminds' `NewVersion`. In contrast to [`super::tolerant::parse`], no blanks are allowed around it, and a
/// pre-release may follow fewer than three numbers (`1.3-rc1`).
///
/// # Errors
/// [`VersionError`].
pub fn parse_version(text: &str) -> Result<Version, VersionError> {
    let read = PartialVersion::parse(text)?;
    let mut numbers = text.split(['-', '+']).take(1);
    if numbers.any(|numbers| numbers.contains(['x', 'X', '*'])) {
        return Err(VersionError::new(
            text,
            "a wildcard is for constraints only",
        ));
    }
    Ok(read.version)
}

impl ConstraintComparison {
    fn matches(&self, version: &Version) -> bool {
        let PartialVersion {
            version: bound,
            written,
        } = &self.bound;
        let order = version.cmp_precedence(bound);
        let prefix = |length: usize| numbers(version)[..length].cmp(&numbers(bound)[..length]);
        match (self.operator, written) {
            (ConstraintOperator::Less, _) => order == Ordering::Less,
            (ConstraintOperator::GreaterOrEqual, _) => order != Ordering::Less,
            (ConstraintOperator::Greater, 1 | 2) => prefix(*written) == Ordering::Greater,
            (ConstraintOperator::Greater, _) => order == Ordering::Greater,
            (ConstraintOperator::LessOrEqual, 3) => order != Ordering::Greater,
            (ConstraintOperator::LessOrEqual, 1) => prefix(1) != Ordering::Greater,
            (ConstraintOperator::LessOrEqual, _) => prefix(2) != Ordering::Greater,
            (ConstraintOperator::NotEqual, 1) => prefix(1) != Ordering::Equal,
            (ConstraintOperator::NotEqual, 2) => {
                prefix(2) != Ordering::Equal || version.pre != bound.pre
            }
            (ConstraintOperator::NotEqual, _) => order != Ordering::Equal,
            (ConstraintOperator::Equal, 3) => order == Ordering::Equal,
            (ConstraintOperator::Equal | ConstraintOperator::Tilde, written) => {
                // `~0.0.0` and a lone wildcard match everything from 0.0.0 on.
                let all = numbers(bound) == [0; 3] && matches!(written, 0 | 3);
                order != Ordering::Less && (all || prefix((*written).min(2)) == Ordering::Equal)
            }
            (ConstraintOperator::Caret, written) => {
                // The first number that is not 0 is fixed; if all are 0, the last one that is written.
                let fixed = match numbers(bound) {
                    [major, ..] if major > 0 || *written == 1 => 1,
                    [_, minor, _] if minor > 0 || *written == 2 => 2,
                    _ => 3,
                };
                order != Ordering::Less && prefix(fixed) == Ordering::Equal
            }
        }
    }
}

impl PartialVersion {
    /// Reads `v1.2.x-rc.1+build`. Everything after a wildcard is ignored.
    fn parse(word: &str) -> Result<Self, VersionError> {
        let fail = |problem: &str| VersionError::new(word, problem);
        let (rest, build) = match word.split_once('+') {
            Some((_, "")) => return Err(fail("nothing follows +")),
            Some((rest, build)) => (rest, BuildMetadata::new(build)),
            None => (word, Ok(BuildMetadata::EMPTY)),
        };
        let (rest, pre) = match rest.split_once('-') {
            Some((_, "")) => return Err(fail("nothing follows -")),
            Some((rest, pre)) => (rest, Prerelease::new(pre)),
            None => (rest, Ok(Prerelease::EMPTY)),
        };
        let mut read = [0; 3];
        let mut written = None;
        for (i, part) in rest
            .strip_prefix('v')
            .unwrap_or(rest)
            .split('.')
            .enumerate()
        {
            let Some(number) = read.get_mut(i) else {
                return Err(fail("it has more than three numbers"));
            };
            if matches!(part, "x" | "X" | "*") {
                written = written.or(Some(i));
            } else if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(VersionError::new(
                    word,
                    format_args!("{part:?} is not a number"),
                ));
            } else if written.is_none() {
                *number = part
                    .parse()
                    .map_err(|_| VersionError::new(word, format_args!("{part} is too large")))?;
            }
        }
        let parts = rest.split('.').count();
        let [major, minor, patch] = read;
        let pre = pre.map_err(|error| VersionError::new(word, error))?;
        let build = build.map_err(|error| VersionError::new(word, error))?;
        Ok(Self {
            version: Version {
                major,
                minor,
                patch,
                pre,
                build,
            },
            written: written.unwrap_or(parts),
        })
    }
}

/// Reads one AND group.
fn parse_comparisons(text: &str, group: &str) -> Result<Vec<ConstraintComparison>, RangeError> {
    let mut comparisons = Vec::new();
    let mut rest = group.trim_ascii();
    if rest.is_empty() {
        return Err(RangeError::EmptyAlternative {
            text: text.to_owned(),
        });
    }
    loop {
        let (spelling, operator, after) = OPERATORS
            .into_iter()
            .find_map(|(spelling, operator)| {
                let after = rest.strip_prefix(spelling)?;
                Some((spelling, operator, after))
            })
            .unwrap_or(("", ConstraintOperator::Equal, rest));
        let (word, after) = split_word(after);
        if word.is_empty() {
            return Err(if spelling.is_empty() {
                RangeError::StrayComma {
                    text: text.to_owned(),
                }
            } else {
                RangeError::EndsInOperator {
                    text: text.to_owned(),
                    operator: spelling.to_owned(),
                }
            });
        }
        let bound = parse_partial(text, word)?;
        match split_upper_bound(spelling, after) {
            Some((word, after)) => {
                comparisons.push(ConstraintComparison {
                    operator: ConstraintOperator::GreaterOrEqual,
                    bound,
                });
                let bound = parse_partial(text, word)?;
                comparisons.push(ConstraintComparison {
                    operator: ConstraintOperator::LessOrEqual,
                    bound,
                });
                rest = after;
            }
            None => {
                comparisons.push(ConstraintComparison { operator, bound });
                rest = after;
            }
        }
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(comparisons);
        }
        if let Some(after) = rest.strip_prefix(',') {
            rest = after.trim_ascii_start();
        }
    }
}

/// Splits off the word at the start of `text`, which ends at white space or a comma.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_ascii_start();
    let end = text.find(|c: char| c.is_ascii_whitespace() || c == ',');
    text.split_at(end.unwrap_or(text.len()))
}

/// Splits off the upper bound of `1.2 - 1.4`, if `after` begins with a dash.
fn split_upper_bound<'a>(operator: &str, after: &'a str) -> Option<(&'a str, &'a str)> {
    let (dash, end) = split_word(after);
    (operator.is_empty() && dash == "-").then(|| split_word(end))
}

fn parse_partial(text: &str, word: &str) -> Result<PartialVersion, RangeError> {
    PartialVersion::parse(word).map_err(|error| RangeError::Version {
        text: text.to_owned(),
        error,
    })
}

fn numbers(version: &Version) -> [u64; 3] {
    [version.major, version.minor, version.patch]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, version: &str, expect: bool) {
        let constraint = Constraint::parse(text).unwrap();
        let version = super::parse_version(version).unwrap();
        assert_eq!(constraint.matches(&version), expect, "{text} on {version}");
    }

    #[test]
    fn pre_releases_match_only_where_a_bound_has_one() {
        check(">=1.25.0", "1.31.2-gke.100", false);
        check(">=1.25.0-0", "1.31.2-gke.100", true);
        check(">=1.2.3-rc.1 <1.2.3", "1.2.3-rc.1", true);
        check("!=1.2-0", "1.2.3", true);
    }

    #[track_caller]
    fn refuses(text: &str, expect: &str) {
        assert_eq!(Constraint::parse(text).unwrap_err().to_string(), expect);
    }

    #[test]
    fn errors_say_what_is_wrong() {
        refuses(
            ">=1.30 <",
            "\">=1.30 <\" ends in an operator: a version must follow <",
        );
        refuses("1.30 ||", "\"1.30 ||\" has an empty side at ||");
        refuses(
            ">=1.30,",
            "\">=1.30,\" has a comma without a comparison on both sides",
        );
        refuses(
            "==1.30",
            "\"==1.30\": \"=1.30\" is not a valid version: \"=1\" is not a number",
        );
        refuses(
            " ",
            "\" \" is empty: write a range, or leave the field out to fit everywhere",
        );
    }
}
