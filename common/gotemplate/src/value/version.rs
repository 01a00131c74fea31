//! Versions: Masterminds' `*semver.Version`, the result of sprig's `semver`.

use std::fmt;

use addons_versions::constraint;
use addons_versions::tolerant::VersionError;

/// A version with its spelling.
#[derive(Clone, Debug)]
pub struct SpelledVersion {
    version: semver::Version,
    original: String,
}

impl SpelledVersion {
    /// Parses a version as Masterminds' `NewVersion`: `v1.2` is 1.2.0.
    ///
    /// # Errors
    /// The text is not a version.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        Ok(Self {
            version: constraint::parse_version(text)?,
            original: text.to_owned(),
        })
    }

    /// Returns the version, for constraints and comparisons.
    #[must_use]
    pub fn version(&self) -> &semver::Version {
        &self.version
    }

    /// Returns the original spelling.
    #[must_use]
    pub fn original(&self) -> &str {
        &self.original
    }
}

impl From<semver::Version> for SpelledVersion {
    fn from(version: semver::Version) -> Self {
        let original = version.to_string();
        Self { version, original }
    }
}

/// Prints the canonical spelling: three numbers without a `v`.
impl fmt::Display for SpelledVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.version.fmt(out)
    }
}
