//! Catalogues that are brought up to date from where they came, and brought to other clusters (semantics 1).

pub mod compatible;
pub mod md5;
pub mod push;
pub mod sync;
pub mod targets;

use common::catalogue::beside::BesideError;
use common::catalogue::channel::LocationError;
use common::catalogue::compatible::TooMany;
use common::catalogue::size::TooLarge;

/// Why a catalogue is not what it is to be.
#[derive(Debug, thiserror::Error)]
pub enum DistributionError {
    /// Nothing says where it comes from.
    #[error("catalogue {name}: spec.from: it does not say where the catalogue comes from")]
    NoFrom {
        /// The catalogue.
        name: String,
    },
    /// A folder where one file is to be.
    #[error("{location}: spec.from names a folder; name the file of the catalogue with path")]
    Folder {
        /// Where it was read.
        location: String,
    },
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
    #[error("catalogues that hold the same cannot be merged: {}", lost.join("; "))]
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
