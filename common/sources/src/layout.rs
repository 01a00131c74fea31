//! Archives for sites without internet: an OCI image layout in one tar file. The file is not compressed,
//! because layers are compressed already.
//!
//! [`PartialArchive`] collects the content in a folder next to the archive, so that an interrupted export can
//! be continued. [`LayoutArchive`] reads an archive and verifies all of it before any content is used.

mod archive;
mod partial;

use std::io::{self, Read};
use std::path::PathBuf;

use common::oci::layout::LayoutError as IndexError;
use common::oci::manifest::{MAX_MANIFESTS, OciManifestError};

use sha2::{Digest as _, Sha256};

pub use archive::{LayoutArchive, StoredManifest};
pub use partial::PartialArchive;

use crate::archive::ArchiveError;
use crate::registry::RegistryAccessError;

/// The maximum size of a manifest in bytes.
const MAX_MANIFEST: u64 = crate::http::bound::MANIFEST;
/// The maximum size of a blob in bytes. The largest layers of images for machine learning have 20 GiB.
const MAX_BLOB: u64 = 64 << 30;
/// The file that marks the archive as an OCI image layout.
const LAYOUT_FILE: &str = "oci-layout";
/// The file that lists the named manifests.
const INDEX_FILE: &str = "index.json";
/// The folder of the blobs.
const BLOBS: &str = "blobs/sha256";

/// Why an archive cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LayoutArchiveError {
    /// A file cannot be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is not an archive.
    #[error("{} is not an archive that export wrote: it is not a tar file", path.display())]
    NotAnArchive {
        /// The file.
        path: PathBuf,
    },
    /// The registry returned other content or an error.
    #[error(transparent)]
    Registry(#[from] RegistryAccessError),
    /// The digest of a blob differs from its name.
    #[error("{}: {name} has digest sha256:{found}: the archive is damaged, or was changed; nothing was pushed", path.display())]
    Digest {
        /// The archive.
        path: PathBuf,
        /// The name of the blob.
        name: String,
        /// The hex sha256 of the content.
        found: String,
    },
    /// A blob in the folder was changed.
    #[error("{} was changed since it was fetched, and is removed; run this again", path.display())]
    Changed {
        /// The path of the blob.
        path: PathBuf,
    },
    /// Another export to the same archive is running.
    #[error("another export to this file is running, and collects its content in {}", folder.display())]
    Locked {
        /// The folder in which it collects the content.
        folder: PathBuf,
    },
    /// An entry does not belong to a layout.
    #[error("{}: {name:?} {why}; nothing was pushed", path.display())]
    Entry {
        /// The archive.
        path: PathBuf,
        /// The name of the entry.
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
    /// A manifest cannot be used.
    #[error("{digest}")]
    Manifest {
        /// The digest of the manifest.
        digest: String,
        /// Why.
        #[source]
        source: OciManifestError,
    },
    /// A blob that a manifest needs is missing.
    #[error("{}: {digest}, which {of} needs, is missing or has another size; nothing was pushed", path.display())]
    Missing {
        /// The archive.
        path: PathBuf,
        /// The digest of the blob.
        digest: String,
        /// What needs the blob.
        of: String,
    },
    /// A manifest is too large.
    #[error("{}: the manifest {digest} is larger than {} MiB; nothing was pushed", path.display(), MAX_MANIFEST >> 20)]
    LargeManifest {
        /// The archive.
        path: PathBuf,
        /// The digest of the manifest.
        digest: String,
    },
    /// The files of an artifact cannot be read.
    #[error("{}: {digest} cannot be unpacked; nothing was pushed", path.display())]
    Artifact {
        /// The archive.
        path: PathBuf,
        /// The digest of the manifest.
        digest: String,
        /// Why.
        #[source]
        source: ArchiveError,
    },
    /// The image has too many manifests.
    #[error(
        "{}: more than {MAX_MANIFESTS} manifests belong to {digest}, each counted as often as it is listed; nothing was pushed",
        path.display()
    )]
    TooMany {
        /// The archive.
        path: PathBuf,
        /// The digest of the image.
        digest: String,
    },
    /// There are more manifests than can be pushed.
    #[error("{}: its names stand for more than {limit} manifests; nothing was pushed", path.display())]
    TooManyNamed {
        /// The archive.
        path: PathBuf,
        /// The maximum number.
        limit: usize,
    },
    /// A blob is too large.
    #[error("{digest} is larger than {} GiB", MAX_BLOB >> 30)]
    TooLarge {
        /// The digest of the blob.
        digest: String,
    },
}

/// Returns the hex digits of a digest that was validated before.
fn hex(digest: &str) -> &str {
    digest.strip_prefix("sha256:").unwrap_or(digest)
}

fn file_error(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LayoutArchiveError {
    let path = path.into();
    |source| LayoutArchiveError::File { path, source }
}

/// A reader that hashes the bytes that it reads.
struct HashingReader<R> {
    inner: R,
    digest: Sha256,
}

impl<R: Read> HashingReader<R> {
    fn new(inner: R) -> Self {
        Self {
            inner,
            digest: Sha256::new(),
        }
    }

    /// Returns the hex sha256 of the bytes that were read.
    fn hex(self) -> String {
        common::text::encode_hex(&self.digest.finalize())
    }

    /// Reads the remaining bytes and returns the hex sha256 of all bytes.
    fn finish(mut self) -> io::Result<String> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(self.hex())
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.digest.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}
