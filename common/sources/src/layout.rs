//! Archives for sites without internet: an OCI image layout in one tar, uncompressed, since layers are compressed already.
//!
//! [`Partial`] collects the content in a folder beside the archive, so that an export that was interrupted goes on where it was.
//! [`Archive`] reads one: nothing of it is used before all of it was verified.

mod archive;
mod artifact;
mod partial;

use std::io;
use std::path::PathBuf;

use common::oci::layout::LayoutError as IndexError;
use common::oci::manifest::{MAX_MANIFESTS, ManifestError};

pub use archive::{Archive, Stored};
pub use partial::Partial;

use crate::archive::ArchiveError;
use crate::registry::RegistryError;

/// Bytes of a manifest.
const MAX_MANIFEST: u64 = crate::http::bound::MANIFEST;
/// Bytes of one blob: the largest layers of images for machine learning have 20 GiB.
const MAX_BLOB: u64 = 64 << 30;
/// Names of the files.
const LAYOUT_FILE: &str = "oci-layout";
const INDEX_FILE: &str = "index.json";
const BLOBS: &str = "blobs/sha256";

/// Why an archive cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// A file cannot be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file that is no archive at all.
    #[error("{} is not an archive that export wrote: it is not a tar file", path.display())]
    NotAnArchive {
        /// The file.
        path: PathBuf,
    },
    /// A registry gave something else, or nothing.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Content with another digest than its name says.
    #[error("{}: {name} has digest sha256:{found}: the archive is damaged, or was changed; nothing was pushed", path.display())]
    Digest {
        /// The archive.
        path: PathBuf,
        /// The blob.
        name: String,
        /// Hex.
        found: String,
    },
    /// A blob of the folder was changed.
    #[error("{} was changed since it was fetched, and is removed; run this again", path.display())]
    Changed {
        /// The blob.
        path: PathBuf,
    },
    /// Another export to the same archive.
    #[error("another export to this file is running, and collects its content in {}", folder.display())]
    Locked {
        /// What it has collected.
        folder: PathBuf,
    },
    /// Something that no layout has.
    #[error("{}: {name:?} {why}; nothing was pushed", path.display())]
    Entry {
        /// The archive.
        path: PathBuf,
        /// Of the entry.
        name: String,
        /// `is not part of an OCI image layout`, …
        why: &'static str,
    },
    /// `index.json` cannot be used.
    #[error("{}", path.display())]
    Index {
        /// The archive.
        path: PathBuf,
        /// Why.
        #[source]
        source: IndexError,
    },
    /// A manifest that cannot be used.
    #[error("{digest}")]
    Manifest {
        /// Of the manifest.
        digest: String,
        /// Why.
        #[source]
        source: ManifestError,
    },
    /// A blob that a manifest needs.
    #[error("{}: {digest}, which {of} needs, is missing or has another size; nothing was pushed", path.display())]
    Missing {
        /// The archive.
        path: PathBuf,
        /// Of the blob.
        digest: String,
        /// What needs it.
        of: String,
    },
    /// A manifest that is too large.
    #[error("{}: the manifest {digest} is larger than {} MiB; nothing was pushed", path.display(), MAX_MANIFEST >> 20)]
    LargeManifest {
        /// The archive.
        path: PathBuf,
        /// Of the manifest.
        digest: String,
    },
    /// An artifact whose files cannot be read.
    #[error("{}: {digest} cannot be unpacked; nothing was pushed", path.display())]
    Artifact {
        /// The archive.
        path: PathBuf,
        /// Of its manifest.
        digest: String,
        /// Why.
        #[source]
        source: ArchiveError,
    },
    /// More manifests than an image can have.
    #[error(
        "{}: more than {MAX_MANIFESTS} manifests belong to {digest}, each counted as often as it is listed; nothing was pushed",
        path.display()
    )]
    TooMany {
        /// The archive.
        path: PathBuf,
        /// Of the image.
        digest: String,
    },
    /// More manifests than can be pushed.
    #[error("{}: its names stand for more than {limit} manifests; nothing was pushed", path.display())]
    TooManyNamed {
        /// The archive.
        path: PathBuf,
        /// So many are allowed.
        limit: usize,
    },
    /// A blob that is too large.
    #[error("{digest} is larger than {} GiB", MAX_BLOB >> 30)]
    TooLarge {
        /// Of the blob.
        digest: String,
    },
}

/// The hex digits of a digest that was judged before.
fn hex(digest: &str) -> &str {
    digest.strip_prefix("sha256:").unwrap_or(digest)
}

fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LayoutError {
    let path = path.into();
    |source| LayoutError::File { path, source }
}
