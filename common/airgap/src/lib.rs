//! Add-ons for sites without internet access: `export` collects everything they need in one archive, and `import` pushes it to the registry
//! of the site. `publish` pushes a catalogue and its packages to a registry in the same way.

mod contents;
mod copy;
pub mod export;
pub mod import;
mod meter;
pub mod publish;
mod push;
pub mod site;

use std::io;

use crate::site::NameError;
use addons_render::package::PackageError;
use addons_sources::layout::LayoutArchiveError;
use addons_sources::registry::RegistryAccessError;
use addons_sources::registry::push::PushError;
use addons_sources::signature::SignerError;
use addons_sources::signature::signing::SigningKeyError;
use common::image::ImageError;
use common::oci::manifest::{MAX_MANIFESTS, OciManifestError};

use addons_operation::error::OperationError;

/// An event during an export or import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AirgapProgress {
    /// An image or artifact is being copied to the archive or to the registry.
    Copying {
        /// Its name.
        name: String,
    },
    /// Progress of a large blob of it.
    Blob {
        /// The name of the image.
        name: String,
        /// Bytes copied so far.
        done: u64,
        /// Size of the blob in bytes.
        size: u64,
    },
    /// An image or artifact was copied.
    Copied {
        /// Its name.
        name: String,
        /// Number of blobs that were sent or fetched.
        blobs: usize,
        /// Their bytes.
        bytes: u64,
        /// Number of blobs that were already present.
        there: usize,
    },
    /// The archive is verified before anything is pushed.
    Verifying,
    /// A tag in the registry now refers to other content.
    Moved {
        /// `HOST/PATH:TAG`.
        name: String,
        /// The digest of the former content, which stays in the registry until its garbage collection.
        former: String,
    },
    /// The catalogue requires signatures, and the published packages have none.
    NotSigned,
    /// A warning for the user.
    Warning(String),
}

/// Receives progress events.
pub type ReportAirgapProgress<'a> = &'a (dyn Fn(AirgapProgress) + Sync);

/// Why an export or an import failed.
#[derive(Debug, thiserror::Error)]
pub enum AirgapError {
    /// An add-on cannot be read or rendered.
    #[error(transparent)]
    Operation(Box<OperationError>),
    /// A registry cannot be read.
    #[error(transparent)]
    Registry(#[from] RegistryAccessError),
    /// A registry refuses a push.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The archive cannot be written or read.
    #[error(transparent)]
    Layout(#[from] LayoutArchiveError),
    /// The name of an image is invalid.
    #[error("{needed_by}")]
    Image {
        /// What needs the image.
        needed_by: String,
        /// Why.
        #[source]
        source: ImageError,
    },
    /// A manifest cannot be copied.
    #[error("{name}")]
    Manifest {
        /// Name of the manifest.
        name: String,
        /// Why.
        #[source]
        source: OciManifestError,
    },
    /// A manifest does not have the size that the index lists.
    #[error("{name} has {found} bytes instead of {wanted}: the content of the registry is damaged")]
    Size {
        /// Name of the manifest.
        name: String,
        /// Its actual size in bytes.
        found: u64,
        /// The size that the index lists.
        wanted: u64,
    },
    /// A tag no longer refers to the verified content.
    #[error(
        "the tag of {name} was moved during the export: {verified} was verified, but the tag is now {found}; run the export again"
    )]
    Moved {
        /// The image or the chart.
        name: String,
        /// The digest that was verified.
        verified: String,
        /// The digest that the tag has now.
        found: String,
    },
    /// An image has more manifests than allowed.
    #[error(
        "{name}: more than {MAX_MANIFESTS} manifests belong to it, each counted as often as it is listed"
    )]
    TooMany {
        /// The image.
        name: String,
    },
    /// The files of an add-on cannot become an artifact.
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
    /// An image has no valid name at the site, or its name is taken by another one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The temporary folder for the archive cannot be created.
    #[error("the folder for temporary files")]
    Scratch {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The key cannot sign.
    #[error(transparent)]
    Key(#[from] SigningKeyError),
    /// The key, or the signature policy of the catalogue, names no usable signer.
    #[error("spec.signature")]
    Signer(#[from] SignerError),
    /// The signature policy of the catalogue does not accept the key.
    #[error(
        "spec.signature accepts {accepted}, and the key that signs is {own}; nothing was pushed"
    )]
    OtherSigner {
        /// The accepted signer.
        accepted: String,
        /// The signer with the key.
        own: String,
    },
    /// The private registry of the catalogue replaces the registry that it is published to.
    #[error(
        "spec.registry reads every image from {registry}, and so not from {target}; nothing was pushed"
    )]
    OtherRegistry {
        /// The name of the catalogue in the registry.
        target: String,
        /// The private registry.
        registry: String,
    },
}

impl From<OperationError> for AirgapError {
    fn from(error: OperationError) -> Self {
        Self::Operation(Box::new(error))
    }
}
