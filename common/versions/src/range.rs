//! Ranges of kops indexes, in the syntax of blang/semver 4.0.0 (`tests/golden/ranges/blang.tsv`).
//!
//! Blanks join comparisons with AND, ` || ` with OR. A version has three numbers, the last of which may be a lower-case `x`. Oddities
//! of upstream are kept, because a kops index has to mean what kops reads: a word of one byte is dropped (so `1.2.0 - 1.4.0` requires
//! both versions at once), `!=1.2.x` matches nothing, and an unknown operator before a wildcard means equality (`~1.2.x` is 1.2.0).
//! One departure: upstream drops a single `<` or `>` at the end; here it is an error.

use std::cmp::Ordering;

use semver::Version;

use super::{RangeError, VersionError};

/// A set of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The groups, one of which must match. A group matches if all its comparisons do.
    alternatives: Vec<Vec<RangeComparison>>,
}

/// A comparison, such as `>=1.6.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RangeComparison {
    operator: RangeOperator,
    bound: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeOperator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

impl Range {
    /// Reads a range.
    ///
    /// # Errors
    /// [`RangeError`], also for an empty text.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let mut alternatives = vec![Vec::new()];
        let words = split_words(text)?;
        let separator = |word: Option<&String>| word.is_some_and(|word| word == "||");
        if separator(words.first()) || separator(words.last()) {
            return Err(RangeError::EmptyAlternative {
                text: text.to_owned(),
            });
        }
        for word in &words {
            match alternatives.last_mut() {
                Some(last) if word != "||" => last.extend(parse_comparisons(text, word)?),
                Some(last) if last.is_empty() => {
                    return Err(RangeError::EmptyAlternative {
                        text: text.to_owned(),
                    });
                }
                _ => alternatives.push(Vec::new()),
            }
        }
        Ok(Self { alternatives })
    }

    /// Whether `version` is in the range, by semver precedence. Pre-releases are included.
    #[must_use]
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives
            .iter()
            .any(|all| all.iter().all(|comparison| comparison.matches(version)))
    }
}

impl RangeComparison {
    fn matches(&self, version: &Version) -> bool {
        let order = version.cmp_precedence(&self.bound);
        match self.operator {
            RangeOperator::Less => order == Ordering::Less,
            RangeOperator::LessOrEqual => order != Ordering::Greater,
            RangeOperator::Equal => order == Ordering::Equal,
            RangeOperator::NotEqual => order != Ordering::Equal,
            RangeOperator::GreaterOrEqual => order != Ordering::Less,
            RangeOperator::Greater => order == Ordering::Greater,
        }
    }
}

impl RangeOperator {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            "" | "=" | "==" => Self::Equal,
            "!" | "!=" => Self::NotEqual,
            ">=" => Self::GreaterOrEqual,
            ">" => Self::Greater,
            _ => return None,
        })
    }
}

/// Splits at blanks (not at other white space), but not after `<`, `>` and `=`. Words of one byte are dropped.
fn split_words(text: &str) -> Result<Vec<String>, RangeError> {
    let ends_in_operator = |word: &str| word.ends_with(['<', '>', '=']);
    let mut words: Vec<String> = Vec::new();
    for part in text.split(' ').filter(|part| !part.is_empty()) {
        match words.last_mut() {
            Some(last) if ends_in_operator(last) => last.push_str(part),
            _ => words.push(part.to_owned()),
        }
    }
    if let Some(last) = words.last().filter(|last| ends_in_operator(last)) {
        return Err(RangeError::EndsInOperator {
            text: text.to_owned(),
            operator: last.clone(),
        });
    }
    words.retain(|word| word.len() > 1);
    if words.is_empty() {
        return Err(RangeError::Empty {
            text: text.to_owned(),
        });
    }
    Ok(words)
}

/// Reads one word: a comparison, or the two comparisons of a wildcard.
fn parse_comparisons(text: &str, word: &str) -> Result<Vec<RangeComparison>, RangeError> {
    let Some(digit) = word.find(|c: char| c.is_ascii_digit()) else {
        return Err(RangeError::Version {
            text: text.to_owned(),
            error: VersionError::new(word, "it holds no number"),
        });
    };
    let (operator, version) = word.split_at(digit);
    let operator = operator.trim();
    if word.contains('x') {
        return parse_wildcard(text, RangeOperator::parse(operator), version);
    }
    let Some(operator) = RangeOperator::parse(operator) else {
        return Err(RangeError::UnknownOperator {
            text: text.to_owned(),
            operator: operator.to_owned(),
        });
    };
    let bound = parse_bound(text, version)?;
    Ok(vec![RangeComparison { operator, bound }])
}

/// Reads a wildcard. `1.2.x` is between its floor 1.2.0 and its ceiling 1.3.0; only some operators need the ceiling.
fn parse_wildcard(
    text: &str,
    operator: Option<RangeOperator>,
    version: &str,
) -> Result<Vec<RangeComparison>, RangeError> {
    let mut numbers = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if numbers.matches('.').count() == 1 {
        numbers.push_str(".0");
    }
    let floor = parse_bound(text, &numbers)?;
    let ceiling = || {
        let next = match version.split('.').collect::<Vec<_>>()[..] {
            [_, "x"] => floor.major.checked_add(1).map(|major| (major, 0)),
            [_, _, "x"] => floor.minor.checked_add(1).map(|minor| (floor.major, minor)),
            _ => None,
        };
        match next {
            Some((major, minor)) => Ok(Version::new(major, minor, 0)),
            None => Err(RangeError::Wildcard {
                text: text.to_owned(),
                word: version.to_owned(),
            }),
        }
    };
    let comparison = |operator, bound| RangeComparison { operator, bound };
    Ok(match operator {
        Some(RangeOperator::Less) => vec![comparison(RangeOperator::Less, floor)],
        Some(RangeOperator::LessOrEqual) => vec![comparison(RangeOperator::Less, ceiling()?)],
        Some(RangeOperator::GreaterOrEqual) => {
            vec![comparison(RangeOperator::GreaterOrEqual, floor)]
        }
        Some(RangeOperator::Greater) => vec![comparison(RangeOperator::GreaterOrEqual, ceiling()?)],
        Some(RangeOperator::Equal) => {
            let ceiling = comparison(RangeOperator::Less, ceiling()?);
            vec![comparison(RangeOperator::GreaterOrEqual, floor), ceiling]
        }
        Some(RangeOperator::NotEqual) => {
            let ceiling = comparison(RangeOperator::GreaterOrEqual, ceiling()?);
            vec![comparison(RangeOperator::Less, floor), ceiling]
        }
        None => vec![comparison(RangeOperator::Equal, floor)],
    })
}

fn parse_bound(text: &str, word: &str) -> Result<Version, RangeError> {
    if word.matches('.').count() < 2 {
        return Err(RangeError::ShortVersion {
            text: text.to_owned(),
            word: word.to_owned(),
        });
    }
    Version::parse(word).map_err(|error| RangeError::Version {
        text: text.to_owned(),
        error: VersionError::new(word, error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, version: &str, expect: bool) {
        let range = Range::parse(text).unwrap();
        let version = super::super::tolerant::parse_kubernetes(version).unwrap();
        assert_eq!(range.matches(&version), expect, "{text} on {version}");
    }

    #[test]
    fn table_t1() {
        check(">=1.6.0", "1.6.0", true);
        check("<1.6.0", "1.6.0", false);
        check(">=1.6.0", "1.5.9", false);
        check(">=1.4.0 <1.6.0", "1.5.9", true);
        check(">=1.4.0 <1.6.0", "1.6.0", false);
    }

    #[test]
    fn table_t1b() {
        check(">=1.6.0", "v1.6.0-beta.1", true);
        check("<1.6.0", "v1.6.0-beta.1", false);
        check(">=1.30.0", "v1.30.4-eks-a737599", true);
        check("<=1.31.2", "v1.31.2+k3s1", true);
        check("1.6.x", "1.6.9", true);
        check("1.6.x", "1.7.0", false);
        check("<1.4.0 || >=1.6.0", "1.5.0", false);
        check("<1.4.0 || >=1.6.0", "1.6.0", true);
        for text in [">=1.6", "^1.6.0", ">=1.4.0,<1.6.0", ">=v1.6.0"] {
            assert!(Range::parse(text).is_err(), "{text}");
        }
    }

    #[track_caller]
    fn refuses(text: &str, expect: &str) {
        assert_eq!(Range::parse(text).unwrap_err().to_string(), expect);
    }

    #[test]
    fn errors_say_what_is_wrong() {
        refuses(
            ">=1.30.0 <",
            "\">=1.30.0 <\" ends in an operator: a version must follow <",
        );
        refuses(
            "^1.6.0",
            "\"^1.6.0\" has the unknown operator \"^\": kops knows <, <=, >, >=, =, ==, != and !",
        );
        refuses(
            ">=1.6",
            "\">=1.6\" has the short version \"1.6\": kops wants three numbers, as in 1.6.0",
        );
        refuses(
            ">=1.4.0,<1.6.0",
            "\">=1.4.0,<1.6.0\": \"1.4.0,<1.6.0\" is not a valid version: unexpected character ',' after patch version number",
        );
        refuses(
            "1.2.x-0",
            "\"1.2.x-0\" has \"1.2.x-0\": the wildcard x must stand last, as in 1.2.x",
        );
        refuses(
            "<1.0.0 || || >2.0.0",
            "\"<1.0.0 || || >2.0.0\" has an empty side at ||",
        );
    }
}
