//! Why a signature does not count.

/// Why a signature does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Not UTF-8.
    #[error("the text is not valid UTF-8")]
    Text,
    /// Not what it should be.
    #[error("the {what} cannot be read: {why}")]
    Malformed {
        /// `bundle`, `payload`, …
        what: &'static str,
        /// Why.
        why: String,
    },
    /// Of something else.
    #[error("it is the signature of another digest")]
    OtherDigest,
    /// A statement about the content, by whoever built or scanned it.
    #[error("it is an attestation ({predicate}) and not a signature")]
    Attestation {
        /// The type of what is attested.
        predicate: String,
    },
    /// The wrong key, or the content was changed after it was signed.
    #[error("the key does not verify it")]
    Key,
    /// The certificate, the log entry, the timestamp or the signature.
    #[error("{0}")]
    Refused(String),
}

impl Flaw {
    /// `what` cannot be read.
    pub(super) fn malformed(what: &'static str, why: impl ToString) -> Self {
        Self::Malformed {
            what,
            why: why.to_string(),
        }
    }
}
