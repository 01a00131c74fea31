//! An error and the places around it, as a chain.

use addons_engine::EngineError;
use addons_helm::HelmError;
use common::values::mask::Mask;

use super::OperationError;
use crate::jail::JailError;

impl OperationError {
    /// The error itself, without the places around it.
    #[must_use]
    pub fn root(&self) -> &Self {
        match self {
            Self::Within { error, .. } | Self::InDirectory { error, .. } => error.root(),
            error => error,
        }
    }

    /// Whether the caller lacks a right.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        let error = match self.root() {
            Self::Engine(error) | Self::NotListed(error) => error,
            _ => return false,
        };
        matches!(error, EngineError::Forbidden { .. })
    }

    /// The error with a place around it.
    #[must_use]
    pub fn at(self, place: String) -> Self {
        Self::Within {
            place,
            error: Box::new(self),
        }
    }

    /// An error about what was rendered, without what a template copied from a Secret. An error that repeats none of it stays
    /// as it is.
    #[must_use]
    pub fn masked(self, mask: &Mask) -> Self {
        let chain = self.chain();
        let text = mask.text(&chain);
        if text == chain {
            return self;
        }
        Self::Masked(text)
    }

    /// Whether rendering it takes more memory than is given to it.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(
            self,
            Self::Helm(HelmError::Memory { .. } | HelmError::TooMuch { .. })
                | Self::Jail(JailError::Memory | JailError::TooLarge | JailError::File { .. })
        )
    }

    /// The error and its causes in one line.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let words = error.to_string();
            // Some messages end with their cause already.
            if !text.ends_with(&words) {
                text = format!("{text}: {words}");
            }
            cause = error.source();
        }
        text
    }
}

/// The result, with a place around its error.
///
/// # Errors
/// That of the result.
pub fn within<T, E: Into<OperationError>>(
    result: Result<T, E>,
    place: impl FnOnce() -> String,
) -> Result<T, OperationError> {
    result.map_err(|error| error.into().at(place()))
}
