//! Places around an error, and the error chain.

use addons_engine::EngineError;
use common::causes::with_causes;
use common::values::mask::SecretMask;

use super::OperationError;

impl OperationError {
    /// Returns the error itself, without the places around it.
    #[must_use]
    pub fn root(&self) -> &Self {
        match self {
            Self::Within { error, .. } | Self::InDirectory { error, .. } => error.root(),
            error => error,
        }
    }

    /// The same, by value.
    #[must_use]
    pub fn into_root(self) -> Self {
        match self {
            Self::Within { error, .. } | Self::InDirectory { error, .. } => error.into_root(),
            error => error,
        }
    }

    /// Whether the error says that the caller lacks a right.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        let error = match self.root() {
            Self::Engine(error) | Self::NotListed(error) => error,
            _ => return false,
        };
        matches!(error, EngineError::Forbidden { .. })
    }

    /// Wraps the error with a place.
    #[must_use]
    pub fn with_place(self, place: String) -> Self {
        Self::Within {
            place,
            error: Box::new(self),
        }
    }

    /// Returns the error with content of Secrets masked. An error that contains none stays unchanged.
    #[must_use]
    pub fn masked(self, mask: &SecretMask) -> Self {
        let chain = self.chain();
        let text = mask.mask_text(&chain);
        if text == chain {
            return self;
        }
        Self::Masked(text)
    }

    /// Returns the error and its causes in one line.
    #[must_use]
    pub fn chain(&self) -> String {
        with_causes(self)
    }
}

/// Wraps the error of a result with a place.
///
/// # Errors
/// That of the result.
pub fn within<T, E: Into<OperationError>>(
    result: Result<T, E>,
    place: impl FnOnce() -> String,
) -> Result<T, OperationError> {
    result.map_err(|error| error.into().with_place(place()))
}
