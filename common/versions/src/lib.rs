//! Versions, and the two syntaxes for ranges of versions that add-ons use (semantics 3).
//!
//! | text | is read by | as upstream |
//! |---|---|---|
//! | version of an entry | [`tolerant::parse`] | kops: blang `ParseTolerant` |
//! | version of a cluster | [`tolerant::parse_kubernetes`] | kops: the same, without the pre-release |
//! | `kubernetesVersion` of a kops index | [`range::Range`] | blang/semver 4.0.0 |
//! | `k8sVersion`, `kkpVersion`, `requires` | [`constraint::Constraint`] | Masterminds/semver 3.4 and 3.5 |
//!
//! Versions are compared by semver precedence, so build metadata never counts. A missing or empty range matches every version. The
//! caller handles it, because both parsers refuse empty text.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod constraint;
pub mod range;
pub mod tolerant;

pub use tolerant::VersionError;

/// Why a range or a constraint cannot be read. `text` is all of it, as written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// The text is blank.
    #[error("{text:?} is empty: write a range, or leave the field out to fit everywhere")]
    Empty {
        /// The text as written.
        text: String,
    },
    /// The text ends in an operator, such as `>=1.30 <`.
    #[error("{text:?} ends in an operator: a version must follow {operator}")]
    EndsInOperator {
        /// The text as written.
        text: String,
        /// The last word.
        operator: String,
    },
    /// One side of `||` is empty, such as in `|| >=1.30.0`.
    #[error("{text:?} has an empty side at ||")]
    EmptyAlternative {
        /// The text as written.
        text: String,
    },
    /// A comma is not between two comparisons.
    #[error("{text:?} has a comma without a comparison on both sides")]
    StrayComma {
        /// The text as written.
        text: String,
    },
    /// A kops range has an unknown operator, such as `^1.2.3`.
    #[error(
        "{text:?} has the unknown operator {operator:?}: kops knows <, <=, >, >=, =, ==, != and !"
    )]
    UnknownOperator {
        /// The text as written.
        text: String,
        /// The operator before the version.
        operator: String,
    },
    /// A kops range has a version with fewer than three numbers, such as `>=1.6`.
    #[error("{text:?} has the short version {word:?}: kops wants three numbers, as in 1.6.0")]
    ShortVersion {
        /// The text as written.
        text: String,
        /// The version.
        word: String,
    },
    /// A wildcard is not last, such as in `1.2.x-rc.1`.
    #[error("{text:?} has {word:?}: the wildcard x must stand last, as in 1.2.x")]
    Wildcard {
        /// The text as written.
        text: String,
        /// The version.
        word: String,
    },
    /// A word is not a version.
    #[error("{text:?}: {error}")]
    Version {
        /// The text as written.
        text: String,
        /// What is wrong with the word. It is part of the message, because denials are printed in one line.
        error: VersionError,
    },
}
