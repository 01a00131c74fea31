//! Updates catalogues from their files, and pushes them to other clusters (semantics 1).

pub mod compatible;
pub(crate) mod file;
pub mod md5;
pub mod push;
pub mod sync;
pub mod targets;

use addons_sources::pinned::PinnedFileError;
use common::catalogue::channel::LocationError;
use common::catalogue::compatible::TooManyVersions;
use common::catalogue::precedence::UnreadCatalogue;
use common::catalogue::reference::NamesMismatch;
use common::catalogue::relative::RelativeManifestError;
use common::catalogue::size::CatalogueTooLarge;
use common::entrance::UnreadableField;

/// Why a catalogue cannot be updated or pushed.
#[derive(Debug, thiserror::Error)]
pub enum DistributionError {
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
    /// There is no catalogue to merge.
    #[error("no catalogues to push")]
    NoSources,
    /// Catalogues have the same entries.
    #[error("catalogues with the same entries cannot be merged: {}", lost.join("; "))]
    HeldTwice {
        /// The entries that each catalogue has to give up.
        lost: Vec<String>,
    },
    /// A relative manifest has no base URL.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// A catalogue with the name of a copy exists that is not a copy from this cluster.
    #[error("it exists there and {}", match holder {
        Some(uid) => format!("is a copy from another cluster ({uid})"),
        None => "is not a copy".to_owned(),
    })]
    NotOurs {
        /// The uid of the cluster that it was copied from.
        holder: Option<String>,
    },
    /// The namespace stands for no cluster.
    #[error("the namespace does not stand for a cluster")]
    NoCluster,
    /// No namespace has these labels.
    #[error("no namespace has the labels {selector}")]
    NoTargets {
        /// The selector that was asked for.
        selector: String,
    },
    /// A relative manifest cannot become a source.
    #[error(transparent)]
    Beside(#[from] RelativeManifestError),
    /// The references take more space than a ConfigMap may have.
    #[error(transparent)]
    TooMany(#[from] TooManyVersions),
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

impl DistributionError {
    /// Returns the error for a catalogue that cannot be read.
    pub(crate) fn unreadable(catalogue: String, unreadable: &UnreadableField) -> Self {
        Self::Unread {
            catalogue,
            why: unreadable.to_string(),
        }
    }
}

impl From<&UnreadCatalogue> for DistributionError {
    fn from(unread: &UnreadCatalogue) -> Self {
        Self::Unread {
            catalogue: unread.catalogue.clone(),
            why: unread.why.clone(),
        }
    }
}
