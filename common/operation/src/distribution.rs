//! Catalogues that are brought up to date from where they came, and brought to other clusters (semantics 1).

pub mod compatible;
pub(crate) mod file;
pub mod md5;
pub mod push;
pub mod sync;
pub mod targets;

use addons_sources::pinned::PinnedFileError;
use common::catalogue::beside::BesideError;
use common::catalogue::channel::LocationError;
use common::catalogue::compatible::TooMany;
use common::catalogue::reference::OtherNames;
use common::catalogue::size::TooLarge;
use common::catalogue::unread::Unread;
use common::entrance::Unreadable;

/// Why a catalogue is not what it is to be.
#[derive(Debug, thiserror::Error)]
pub enum DistributionError {
    /// Nothing says where it comes from.
    #[error("catalogue {name}: spec.from: it does not say where the catalogue comes from")]
    NoFrom {
        /// The catalogue.
        name: String,
    },
    /// A copy follows its source, and not what that comes from.
    #[error(
        "catalogue {name}: it is a copy; the cluster of its source brings it up to date with catalogue push"
    )]
    Copy {
        /// The catalogue.
        name: String,
    },
    /// The file of a catalogue.
    #[error(transparent)]
    File(Box<PinnedFileError>),
    /// A catalogue that cannot be read, or its file.
    #[error("catalogue {catalogue}: {why}")]
    Unread {
        /// The catalogue.
        catalogue: String,
        /// Why.
        why: String,
    },
    /// A catalogue by reference with other names than its file.
    #[error(transparent)]
    OtherNames(#[from] OtherNames),
    /// A file with other catalogues.
    #[error("{location}: the file holds {found} catalogues, and none of them is named {name}")]
    NotInFile {
        /// Where it was read.
        location: String,
        /// The catalogue.
        name: String,
        /// How many the file holds.
        found: usize,
    },
    /// There is nothing to merge.
    #[error("no catalogues to push")]
    NoSources,
    /// Catalogues that hold the same.
    #[error("catalogues with the same entries cannot be merged: {}", lost.join("; "))]
    HeldTwice {
        /// What each has to give up.
        lost: Vec<String>,
    },
    /// A relative manifest without a base.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// A catalogue of the name of a copy that is not a copy from this cluster.
    #[error("it exists there and {}", match holder {
        Some(uid) => format!("is a copy from another cluster ({uid})"),
        None => "is not a copy".to_owned(),
    })]
    NotOurs {
        /// The uid of the cluster that it is a copy from.
        holder: Option<String>,
    },
    /// A namespace that stands for no cluster.
    #[error("the namespace does not stand for a cluster")]
    NoCluster,
    /// No namespace has such labels.
    #[error("no namespace has the labels {selector}")]
    NoTargets {
        /// As asked.
        selector: String,
    },
    /// A manifest beside the catalogue that leads nowhere.
    #[error(transparent)]
    Beside(#[from] BesideError),
    /// References that take too much.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// It does not fit into an object.
    #[error("catalogue {name}")]
    TooLarge {
        /// The catalogue.
        name: String,
        /// Why.
        #[source]
        error: TooLarge,
    },
}

impl DistributionError {
    /// A catalogue that cannot be read.
    pub(crate) fn unreadable(catalogue: String, unreadable: &Unreadable) -> Self {
        Self::Unread {
            catalogue,
            why: unreadable.to_string(),
        }
    }
}

impl From<&Unread> for DistributionError {
    fn from(unread: &Unread) -> Self {
        Self::Unread {
            catalogue: unread.catalogue.clone(),
            why: unread.why.clone(),
        }
    }
}
