//! Versions, and the two syntaxes of ranges in which add-ons say where they fit (semantics 3).
//!
//! | text | is read by | as upstream |
//! |---|---|---|
//! | version of an entry | [`tolerant::parse`] | kops: blang `ParseTolerant` |
//! | version of a cluster | [`kubernetes::parse`] | kops: the same, without the pre-release |
//! | `kubernetesVersion` of a kops index | [`range::Range`] | blang/semver 4.0.0 |
//! | `k8sVersion`, `kkpVersion`, `requires` | [`constraint::Constraint`] | Masterminds/semver 3.4 and 3.5 |
//!
//! Versions are compared by semver precedence: build metadata never counts. A missing or empty range matches every
//! version; the caller handles that, because both parsers refuse empty text.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod constraint;
pub mod kubernetes;
pub mod range;
pub mod tolerant;

pub use tolerant::VersionError;

/// What is wrong with a range or a constraint; `text` is the whole of it, as written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// Nothing but blanks.
    #[error("{text:?} is empty: write a range, or leave the field out to fit everywhere")]
    Empty {
        /// As written.
        text: String,
    },
    /// `>=1.30 <`
    #[error("{text:?} ends in an operator: a version must follow {operator}")]
    EndsInOperator {
        /// As written.
        text: String,
        /// The last word.
        operator: String,
    },
    /// `|| >=1.30.0`
    #[error("{text:?} has an empty side at ||")]
    EmptyAlternative {
        /// As written.
        text: String,
    },
    /// A misplaced comma.
    #[error("{text:?} has a comma without a comparison on both sides")]
    StrayComma {
        /// As written.
        text: String,
    },
    /// `^1.2.3` in a kops index.
    #[error(
        "{text:?} has the unknown operator {operator:?}: kops knows <, <=, >, >=, =, ==, != and !"
    )]
    UnknownOperator {
        /// As written.
        text: String,
        /// The operator before the version.
        operator: String,
    },
    /// `>=1.6` in a kops index.
    #[error("{text:?} has the short version {word:?}: kops wants three numbers, as in 1.6.0")]
    ShortVersion {
        /// As written.
        text: String,
        /// The version.
        word: String,
    },
    /// `1.2.x-rc.1`
    #[error("{text:?} has {word:?}: the wildcard x must stand last, as in 1.2.x")]
    Wildcard {
        /// As written.
        text: String,
        /// The version.
        word: String,
    },
    /// A word that is not a version.
    #[error("{text:?}: {error}")]
    Version {
        /// As written.
        text: String,
        /// What is wrong with the word; it is part of the message, because denials print one line.
        error: VersionError,
    },
}
