//! Catalogues that are brought up to date from where they came, and brought to other clusters (semantics 1).

pub mod sync;

use common::catalogue::beside::BesideError;
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
    /// A manifest beside the catalogue that leads nowhere.
    #[error(transparent)]
    Beside(#[from] BesideError),
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
