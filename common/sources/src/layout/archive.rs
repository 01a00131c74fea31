//! Reads an archive that was verified as a whole: every blob has its digest, and none is missing.

mod trees;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Take};
use std::path::{Path, PathBuf};

use addons_render::package::{Package, PackageError};
use common::oci::layout::{NamedManifest, read};
use common::oci::manifest::{Descriptor, OciManifest, is_digest};
use sha2::{Digest as _, Sha256};
use tar::EntryType;

use super::{
    BLOBS, HashingReader, INDEX_FILE, LAYOUT_FILE, LayoutArchiveError, MAX_BLOB, MAX_MANIFEST,
    file_error, hex,
};
use crate::archive::read_files;
use trees::Trees;

/// The maximum number of files in an archive, and of manifests that belong to all of its names.
const MAX_ENTRIES: usize = 500_000;
/// The maximum size of `index.json` in bytes.
const MAX_INDEX: u64 = 64 << 20;

/// An archive whose content was verified.
#[derive(Debug)]
pub struct LayoutArchive {
    path: PathBuf,
    /// The offset and size of each blob.
    blobs: BTreeMap<String, (u64, u64)>,
    named: Vec<NamedManifest>,
    trees: Trees,
}

/// A manifest in an archive.
#[derive(Clone, Debug)]
pub struct StoredManifest {
    /// The descriptor of the manifest.
    pub descriptor: Descriptor,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The parsed manifest.
    pub manifest: OciManifest,
}

impl LayoutArchive {
    /// Reads and verifies an archive.
    ///
    /// # Errors
    /// [`LayoutArchiveError`]: an entry that does not belong to a layout, a wrong digest, or a missing blob.
    pub fn open(path: &Path) -> Result<Self, LayoutArchiveError> {
        let opened = File::open(path).map_err(file_error(path))?;
        let mut archive = tar::Archive::new(BufReader::with_capacity(1 << 20, opened));
        let (mut blobs, mut index) = (BTreeMap::new(), None);
        let wrong = |name: &str, why| LayoutArchiveError::Entry {
            path: path.to_owned(),
            name: name.to_owned(),
            why,
        };
        let mut seen = BTreeSet::new();
        for entry in archive.entries().map_err(file_error(path))? {
            let mut entry = match entry {
                Err(_) if seen.is_empty() => {
                    let path = path.to_owned();
                    return Err(LayoutArchiveError::NotAnArchive { path });
                }
                entry => entry.map_err(file_error(path))?,
            };
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            match entry.header().entry_type() {
                EntryType::Regular | EntryType::Continuous => {}
                EntryType::Directory if ["blobs/", "blobs/sha256/"].contains(&&*name) => continue,
                _ => return Err(wrong(&name, "is not a regular file")),
            }
            if !seen.insert(name.clone()) {
                return Err(wrong(&name, "occurs twice"));
            }
            if seen.len() > MAX_ENTRIES {
                return Err(wrong(&name, "is one file too many"));
            }
            let digest = name.strip_prefix(BLOBS).and_then(|it| it.strip_prefix('/'));
            let digest = digest.map(|hex| format!("sha256:{hex}"));
            match (name.as_str(), digest) {
                (LAYOUT_FILE, _) => {}
                (INDEX_FILE, _) => {
                    let mut bytes = Vec::new();
                    let mut limited = (&mut entry).take(MAX_INDEX);
                    limited.read_to_end(&mut bytes).map_err(file_error(path))?;
                    index = Some(bytes);
                }
                (_, Some(digest)) if is_digest(&digest) => {
                    let (at, size) = (entry.raw_file_position(), entry.size());
                    if size > MAX_BLOB {
                        return Err(LayoutArchiveError::TooLarge { digest });
                    }
                    let found = sha256(&mut entry).map_err(file_error(path))?;
                    if found != hex(&digest) {
                        let path = path.to_owned();
                        return Err(LayoutArchiveError::Digest { path, name, found });
                    }
                    blobs.insert(digest, (at, size));
                }
                _ => return Err(wrong(&name, "is not part of an OCI image layout")),
            }
        }
        let index = index.ok_or_else(|| wrong(INDEX_FILE, "is missing"))?;
        let named = read(&index).map_err(|source| LayoutArchiveError::Index {
            path: path.to_owned(),
            source,
        })?;
        Self::verify(path, blobs, named)
    }

    /// Verifies that no named manifest and none of its blobs is missing.
    fn verify(
        path: &Path,
        blobs: BTreeMap<String, (u64, u64)>,
        named: Vec<NamedManifest>,
    ) -> Result<Self, LayoutArchiveError> {
        let mut archive = Self {
            path: path.to_owned(),
            blobs,
            named,
            trees: Trees::default(),
        };
        for one in &archive.named {
            if !archive.has(&one.descriptor) {
                return Err(archive.missing(&one.descriptor.digest, INDEX_FILE));
            }
        }
        let listed = |digest: &str| -> Result<Vec<String>, LayoutArchiveError> {
            let listed = archive
                .read_manifest(digest)?
                .manifest
                .manifests
                .into_iter();
            Ok(listed.map(|one| one.digest).collect())
        };
        archive.trees = Trees::read(path, &archive.named, listed)?;
        Ok(archive)
    }

    /// The named images of the archive, each before its referrers.
    #[must_use]
    pub fn named(&self) -> &[NamedManifest] {
        &self.named
    }

    /// Returns the digests of a named manifest and of all manifests that it needs, dependencies first.
    #[must_use]
    pub fn tree<'a>(&'a self, root: &'a str) -> Vec<&'a str> {
        self.trees.ordered(root)
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// The manifest is missing or cannot be used, or a blob that it needs is missing.
    pub fn read_manifest(&self, digest: &str) -> Result<StoredManifest, LayoutArchiveError> {
        let bytes = self.read_small_blob(digest)?;
        let manifest =
            OciManifest::read(&bytes).map_err(|source| LayoutArchiveError::Manifest {
                digest: digest.to_owned(),
                source,
            })?;
        for needed in manifest.blobs.iter().chain(&manifest.manifests) {
            if !self.has(needed) {
                return Err(self.missing(&needed.digest, digest));
            }
        }
        Ok(StoredManifest {
            descriptor: Descriptor {
                media_type: manifest.media_type.clone(),
                digest: digest.to_owned(),
                size: bytes.len() as u64,
            },
            bytes,
            manifest,
        })
    }

    /// Reads the files of an artifact that [`super::PartialArchive::put_files`] created, with the same limits
    /// as from a registry.
    ///
    /// # Errors
    /// The artifact is missing or cannot be unpacked.
    pub fn files(&self, artifact: &str) -> Result<Package, LayoutArchiveError> {
        let manifest = self.read_manifest(artifact)?.manifest;
        let files = match manifest.blobs.last() {
            Some(layer) => {
                let mut blob = HashingReader::new(self.blob(&layer.digest)?);
                let files = read_files(&mut blob);
                let found = blob.finish().map_err(file_error(&self.path))?;
                self.check(&layer.digest, found)?;
                files
            }
            None => Err(PackageError::Empty.into()),
        };
        files.map_err(|source| LayoutArchiveError::Artifact {
            path: self.path.clone(),
            digest: artifact.to_owned(),
            source,
        })
    }

    /// Reads a blob of at most the maximum size of a manifest.
    fn read_small_blob(&self, digest: &str) -> Result<Vec<u8>, LayoutArchiveError> {
        let mut blob = self.blob(digest)?;
        if blob.limit() > MAX_MANIFEST {
            return Err(LayoutArchiveError::LargeManifest {
                path: self.path.clone(),
                digest: digest.to_owned(),
            });
        }
        let mut bytes = Vec::new();
        blob.read_to_end(&mut bytes)
            .map_err(file_error(&self.path))?;
        self.check(digest, common::text::encode_hex(&Sha256::digest(&bytes)))?;
        Ok(bytes)
    }

    /// Refuses content that differs from what was verified, because the file may have been replaced in the
    /// meantime.
    fn check(&self, digest: &str, found: String) -> Result<(), LayoutArchiveError> {
        if found == hex(digest) {
            return Ok(());
        }
        Err(LayoutArchiveError::Digest {
            path: self.path.clone(),
            name: format!("{BLOBS}/{}", hex(digest)),
            found,
        })
    }

    /// Whether the archive has a blob of this size.
    fn has(&self, blob: &Descriptor) -> bool {
        let found = self.blobs.get(&blob.digest);
        found.is_some_and(|(_, size)| *size == blob.size)
    }

    /// Opens a blob. Its content is not verified again, because the registry compares it with the digest.
    ///
    /// # Errors
    /// The blob is missing.
    pub fn blob(&self, digest: &str) -> Result<Take<File>, LayoutArchiveError> {
        let Some((at, size)) = self.blobs.get(digest) else {
            return Err(self.missing(digest, INDEX_FILE));
        };
        let mut opened = File::open(&self.path).map_err(file_error(&self.path))?;
        opened
            .seek(SeekFrom::Start(*at))
            .map_err(file_error(&self.path))?;
        Ok(opened.take(*size))
    }

    fn missing(&self, digest: &str, of: &str) -> LayoutArchiveError {
        LayoutArchiveError::Missing {
            path: self.path.clone(),
            digest: digest.to_owned(),
            of: of.to_owned(),
        }
    }
}

fn sha256(bytes: impl Read) -> io::Result<String> {
    HashingReader::new(bytes).finish()
}

#[cfg(test)]
mod tests;
