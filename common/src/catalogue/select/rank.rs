//! The order of entries under the documented rules.

use semver::{BuildMetadata, Version};

use addons_versions::tolerant;

/// How new an entry is. Build metadata does not count (semantics 2.1), so entries can have equal ranks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryRank {
    /// The entry has no version.
    Unversioned,
    /// The version cannot be read. It never replaces a readable one.
    Unreadable,
    /// The version, without build metadata.
    Versioned(Version),
}

impl EntryRank {
    pub(super) fn new(version: &str) -> Self {
        if version.is_empty() {
            return Self::Unversioned;
        }
        match tolerant::parse(version) {
            Ok(version) => Self::Versioned(Version {
                build: BuildMetadata::EMPTY,
                ..version
            }),
            Err(_) => Self::Unreadable,
        }
    }
}
