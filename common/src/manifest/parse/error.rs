//! Errors of manifests.

use crate::manifest::FilePosition;
use crate::manifest::key::ObjectKey;
use crate::manifest::yaml::YamlProblem;

/// Why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The file is too long.
    #[error(
        "{file}: {bytes} bytes, more than the {limit} that a manifest may have: split it into several add-ons"
    )]
    TooLong {
        /// The file.
        file: String,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// There are too many objects.
    #[error("{place}: more than {limit} objects in one manifest: split it into several add-ons")]
    TooMany {
        /// The first object beyond the limit.
        place: FilePosition,
        /// The limit.
        limit: usize,
    },
    /// The file is not YAML.
    #[error("{place}: cannot be read as YAML")]
    Yaml {
        /// Position of the problem.
        place: FilePosition,
        /// What is wrong.
        #[source]
        problem: YamlProblem,
    },
    /// A document or list item is not a map.
    #[error("{place}: {found} where a Kubernetes object is expected")]
    NotAnObject {
        /// Position of the value.
        place: FilePosition,
        /// The type that was found: `text`, `a list`, …
        found: &'static str,
    },
    /// A field that every object needs is missing.
    #[error("{place}: the object has no {field}")]
    Missing {
        /// Position of the object.
        place: FilePosition,
        /// The field.
        field: &'static str,
    },
    /// A field has another type than Kubernetes expects.
    #[error("{place}: {field} is {found} where {expected} is expected{}", if *.expected == "text" { ": put it in quotes" } else { "" })]
    WrongType {
        /// Position of the object.
        place: FilePosition,
        /// The field.
        field: String,
        /// The actual type.
        found: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// A name cannot be part of a URL.
    #[error(
        "{place}: {field} {value:?} is not a valid object name: it is empty or has a / or % in it"
    )]
    InvalidName {
        /// Position of the object.
        place: FilePosition,
        /// The field.
        field: &'static str,
        /// The name.
        value: String,
    },
    /// The server would generate the name.
    #[error(
        "{place}: the {kind} has generateName: it would be a new object each time; give it a metadata.name"
    )]
    GenerateName {
        /// Position of the object.
        place: FilePosition,
        /// Its kind.
        kind: String,
    },
    /// Two different objects have the same key.
    #[error("{second}: {key} is already at {first} and differs: keep one of them")]
    Conflict {
        /// The key.
        key: Box<ObjectKey>,
        /// Position of the first object.
        first: FilePosition,
        /// Position of the second object.
        second: FilePosition,
    },
}

impl ManifestError {
    /// Returns the position of the problem, or `None` if the whole file is too long.
    #[must_use]
    pub fn place(&self) -> Option<&FilePosition> {
        match self {
            Self::TooLong { .. } => None,
            Self::TooMany { place, .. }
            | Self::Yaml { place, .. }
            | Self::NotAnObject { place, .. }
            | Self::Missing { place, .. }
            | Self::WrongType { place, .. }
            | Self::InvalidName { place, .. }
            | Self::GenerateName { place, .. }
            | Self::Conflict { second: place, .. } => Some(place),
        }
    }

    /// Returns the file with the problem.
    #[must_use]
    pub fn file(&self) -> &str {
        match self {
            Self::TooLong { file, .. } => file,
            other => other.place().map_or("", |place| &place.file),
        }
    }
}
