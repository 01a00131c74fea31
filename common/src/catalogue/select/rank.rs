//! The order of entries by the documented rules.

use semver::{BuildMetadata, Version};

use addons_versions::tolerant;

/// How new an entry is. Equal ranks tie: build metadata is not compared (semantics 2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Without a version.
    Unversioned,
    /// With one that cannot be read: it replaces no readable one.
    Unreadable,
    /// With a version.
    Versioned(Version),
}

impl Rank {
    pub(super) fn of(version: &str) -> Self {
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
