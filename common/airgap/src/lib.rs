//! Add-ons for a site without internet: what they need goes into one archive, and from there into the registry of the site.

mod contents;
mod copy;
pub mod export;
pub mod import;
mod meter;
pub mod site;

use crate::site::NameError;
use addons_render::package::PackageError;
use addons_sources::layout::LayoutArchiveError;
use addons_sources::registry::RegistryError;
use addons_sources::registry::push::PushError;
use common::image::ImageError;
use common::oci::manifest::{MAX_MANIFESTS, ManifestError};

use addons_operation::error::OperationError;

/// What happens meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Something is copied to the archive or to the registry.
    Copying {
        /// Its name.
        name: String,
    },
    /// A blob of it that takes long is on its way.
    Blob {
        /// Of what is copied.
        name: String,
        /// Bytes that were copied.
        done: u64,
        /// Of so many.
        size: u64,
    },
    /// That was done.
    Copied {
        /// Its name.
        name: String,
        /// Blobs that were sent or fetched.
        blobs: usize,
        /// Their bytes.
        bytes: u64,
        /// Blobs that were there already.
        there: usize,
    },
    /// The archive is verified before anything is pushed.
    Verifying,
    /// A tag of the registry had another content until now.
    Moved {
        /// `HOST/PATH:TAG`.
        name: String,
        /// The digest of the former content, which stays in the registry until that collects its garbage.
        former: String,
    },
    /// Something that the user should know.
    Warning(String),
}

/// Receives what happens.
pub type Report<'a> = &'a (dyn Fn(Progress) + Sync);

/// Why an archive was not made, or not brought to a registry.
#[derive(Debug, thiserror::Error)]
pub enum AirgapError {
    /// An add-on cannot be read or rendered.
    #[error(transparent)]
    Operation(Box<OperationError>),
    /// A registry cannot be read.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A registry does not take something.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The archive cannot be written or read.
    #[error(transparent)]
    Layout(#[from] LayoutArchiveError),
    /// A name that cannot be pulled.
    #[error("{needed_by}")]
    Image {
        /// What needs it.
        needed_by: String,
        /// Why.
        #[source]
        source: ImageError,
    },
    /// A manifest that cannot be copied.
    #[error("{name}")]
    Manifest {
        /// Of the manifest.
        name: String,
        /// Why.
        #[source]
        source: ManifestError,
    },
    /// A manifest with another size than what names it says.
    #[error("{name} has {found} bytes instead of {wanted}: the content of the registry is damaged")]
    Size {
        /// Of the manifest.
        name: String,
        /// What it has.
        found: u64,
        /// What it is to have.
        wanted: u64,
    },
    /// A tag that stands for something else than what was verified.
    #[error(
        "the tag of {name} was moved during the export: {verified} was verified, but the tag is now {found}; run the export again"
    )]
    Moved {
        /// The image or the chart.
        name: String,
        /// The digest that was verified.
        verified: String,
        /// That of what would be in the archive.
        found: String,
    },
    /// More manifests than an image can have.
    #[error(
        "{name}: more than {MAX_MANIFESTS} manifests belong to it, each counted as often as it is listed"
    )]
    TooMany {
        /// The image.
        name: String,
    },
    /// The files of an add-on cannot be an artifact.
    #[error("{addon}")]
    Package {
        /// The add-on.
        addon: String,
        /// Why.
        #[source]
        source: PackageError,
    },
    /// The catalogue cannot be written as YAML.
    #[error("the catalogue of the site: {0}")]
    Catalogue(String),
    /// Something has no name at the site, or the name of something else.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl From<OperationError> for AirgapError {
    fn from(error: OperationError) -> Self {
        Self::Operation(Box::new(error))
    }
}
