//! Errors about the file that a catalogue comes from.

use addons_sources::pinned::PinnedFileError;
use common::catalogue::precedence::UnreadCatalogue;
use common::catalogue::reference::NamesMismatch;
use common::catalogue::relative::RelativeManifestError;
use common::catalogue::size::CatalogueTooLarge;
use common::entrance::UnreadableField;

use super::OperationError;

/// Why the content of a catalogue cannot be read from its file, or not be stored.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueFileError {
    /// The catalogue does not say where it comes from.
    #[error("catalogue {name}: spec.from: it does not say where the catalogue comes from")]
    NoFrom {
        /// The catalogue.
        name: String,
    },
    /// A copy follows its source catalogue, not the file of that catalogue.
    #[error(
        "catalogue {name}: it is a copy; the cluster of its source brings it up to date with catalogue push"
    )]
    Copy {
        /// The catalogue.
        name: String,
    },
    /// The file of a catalogue cannot be read.
    #[error(transparent)]
    File(Box<PinnedFileError>),
    /// A catalogue or its file cannot be read.
    #[error("catalogue {catalogue}: {why}")]
    Unread {
        /// The catalogue.
        catalogue: String,
        /// Why.
        why: String,
    },
    /// The names in a catalogue by reference are not those in its file.
    #[error(transparent)]
    OtherNames(#[from] NamesMismatch),
    /// The file has several catalogues, and none with this name.
    #[error("{location}: the file holds {found} catalogues, and none of them is named {name}")]
    NotInFile {
        /// Where the file was read.
        location: String,
        /// The catalogue.
        name: String,
        /// How many catalogues the file has.
        found: usize,
    },
    /// A relative manifest cannot become a source.
    #[error(transparent)]
    Beside(#[from] RelativeManifestError),
    /// The catalogue does not fit into an object.
    #[error("catalogue {name}")]
    TooLarge {
        /// The catalogue.
        name: String,
        /// Why.
        #[source]
        error: CatalogueTooLarge,
    },
}

impl CatalogueFileError {
    /// Returns the error for a catalogue that cannot be read.
    #[must_use]
    pub fn unreadable(catalogue: String, unreadable: &UnreadableField) -> Self {
        Self::Unread {
            catalogue,
            why: unreadable.to_string(),
        }
    }
}

impl From<&UnreadCatalogue> for CatalogueFileError {
    fn from(unread: &UnreadCatalogue) -> Self {
        Self::Unread {
            catalogue: unread.catalogue.clone(),
            why: unread.why.clone(),
        }
    }
}

impl From<PinnedFileError> for OperationError {
    fn from(error: PinnedFileError) -> Self {
        match error {
            PinnedFileError::Source(error) => error.into(),
            error => CatalogueFileError::File(Box::new(error)).into(),
        }
    }
}
