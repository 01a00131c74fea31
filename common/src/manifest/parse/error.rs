//! Why a manifest cannot be used.

use crate::manifest::Place;
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
    /// Too many objects.
    #[error("{place}: more than {limit} objects in one manifest: split it into several add-ons")]
    TooMany {
        /// The first object beyond the limit.
        place: Place,
        /// The limit.
        limit: usize,
    },
    /// Not YAML.
    #[error("{place}: cannot be read as YAML")]
    Yaml {
        /// Where.
        place: Place,
        /// What is wrong.
        #[source]
        problem: YamlProblem,
    },
    /// A document or list item that is not a map.
    #[error("{place}: {found} where a Kubernetes object is expected")]
    NotAnObject {
        /// Where.
        place: Place,
        /// `text`, `a list`, …
        found: &'static str,
    },
    /// A field that every object needs.
    #[error("{place}: the object has no {field}")]
    Missing {
        /// The object.
        place: Place,
        /// The field.
        field: &'static str,
    },
    /// A field of another type than Kubernetes expects.
    #[error("{place}: {field} is {found} where {expected} is expected{}", if *.expected == "text" { ": put it in quotes" } else { "" })]
    WrongType {
        /// The object.
        place: Place,
        /// The field.
        field: String,
        /// The actual type.
        found: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// A name that cannot be part of a URL.
    #[error(
        "{place}: {field} {value:?} is not a valid object name: it is empty or has a / or % in it"
    )]
    InvalidName {
        /// The object.
        place: Place,
        /// The field.
        field: &'static str,
        /// The name.
        value: String,
    },
    /// A name that the server would generate.
    #[error(
        "{place}: the {kind} has generateName: it would be a new object each time; give it a metadata.name"
    )]
    GenerateName {
        /// The object.
        place: Place,
        /// Its kind.
        kind: String,
    },
    /// Two different objects under one key.
    #[error("{second}: {key} is already at {first} and differs: keep one of them")]
    Conflict {
        /// The key.
        key: Box<ObjectKey>,
        /// The first one.
        first: Place,
        /// The second one.
        second: Place,
    },
}

impl ManifestError {
    /// Where it is; without a line where the whole file is too long.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
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

    /// The file that cannot be used.
    #[must_use]
    pub fn file(&self) -> &str {
        match self {
            Self::TooLong { file, .. } => file,
            other => other.place().map_or("", |place| &place.file),
        }
    }
}
