//! An archive that was verified as a whole: every blob by its digest, and that none is missing.

mod trees;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Take};
use std::path::{Path, PathBuf};

use addons_render::package::{Package, PackageError};
use common::oci::layout::{Named, read};
use common::oci::manifest::{Descriptor, Manifest, is_digest};
use sha2::{Digest as _, Sha256};
use tar::EntryType;

use super::{BLOBS, INDEX_FILE, LAYOUT_FILE, LayoutError, MAX_BLOB, MAX_MANIFEST, file, hex};
use crate::archive::read_files;
use trees::Trees;

/// Files of an archive, and manifests that its names stand for together.
const MAX_ENTRIES: usize = 500_000;
/// Bytes of `index.json`.
const MAX_INDEX: u64 = 64 << 20;

/// An archive whose content was verified.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    /// Where each blob begins, and its size.
    blobs: BTreeMap<String, (u64, u64)>,
    named: Vec<Named>,
    trees: Trees,
}

/// A manifest of an archive.
#[derive(Clone, Debug)]
pub struct Stored {
    /// What names it.
    pub descriptor: Descriptor,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What it says.
    pub manifest: Manifest,
}

impl Archive {
    /// Reads all of an archive.
    ///
    /// # Errors
    /// [`LayoutError`]: another entry than those of a layout, a wrong digest, a blob that is missing.
    pub fn open(path: &Path) -> Result<Self, LayoutError> {
        let opened = File::open(path).map_err(file(path))?;
        let mut archive = tar::Archive::new(BufReader::with_capacity(1 << 20, opened));
        let (mut blobs, mut index) = (BTreeMap::new(), None);
        let wrong = |name: &str, why| LayoutError::Entry {
            path: path.to_owned(),
            name: name.to_owned(),
            why,
        };
        let mut seen = BTreeSet::new();
        for entry in archive.entries().map_err(file(path))? {
            let mut entry = match entry {
                Err(_) if seen.is_empty() => {
                    let path = path.to_owned();
                    return Err(LayoutError::NotAnArchive { path });
                }
                entry => entry.map_err(file(path))?,
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
                    limited.read_to_end(&mut bytes).map_err(file(path))?;
                    index = Some(bytes);
                }
                (_, Some(digest)) if is_digest(&digest) => {
                    let (at, size) = (entry.raw_file_position(), entry.size());
                    if size > MAX_BLOB {
                        return Err(LayoutError::TooLarge { digest });
                    }
                    let found = sha256(&mut entry).map_err(file(path))?;
                    if found != hex(&digest) {
                        let path = path.to_owned();
                        return Err(LayoutError::Digest { path, name, found });
                    }
                    blobs.insert(digest, (at, size));
                }
                _ => return Err(wrong(&name, "is not part of an OCI image layout")),
            }
        }
        let index = index.ok_or_else(|| wrong(INDEX_FILE, "is missing"))?;
        let named = read(&index).map_err(|source| LayoutError::Index {
            path: path.to_owned(),
            source,
        })?;
        Self::verified(path, blobs, named)
    }

    /// Verifies that nothing of what is named is missing.
    fn verified(
        path: &Path,
        blobs: BTreeMap<String, (u64, u64)>,
        named: Vec<Named>,
    ) -> Result<Self, LayoutError> {
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
        let listed = |digest: &str| -> Result<Vec<String>, LayoutError> {
            let listed = archive.stored(digest)?.manifest.manifests.into_iter();
            Ok(listed.map(|one| one.digest).collect())
        };
        archive.trees = Trees::read(path, &archive.named, listed)?;
        Ok(archive)
    }

    /// What the archive names, an image before what refers to it.
    #[must_use]
    pub fn named(&self) -> &[Named] {
        &self.named
    }

    /// The digests of a manifest that is named and of those that it needs, each after those that it needs itself.
    #[must_use]
    pub fn tree<'a>(&'a self, root: &'a str) -> Vec<&'a str> {
        self.trees.of(root)
    }

    /// A manifest.
    ///
    /// # Errors
    /// One that is missing or cannot be used, or needs a blob that is missing.
    pub fn stored(&self, digest: &str) -> Result<Stored, LayoutError> {
        let bytes = self.small(digest)?;
        let manifest = Manifest::read(&bytes).map_err(|source| LayoutError::Manifest {
            digest: digest.to_owned(),
            source,
        })?;
        for needed in manifest.blobs.iter().chain(&manifest.manifests) {
            if !self.has(needed) {
                return Err(self.missing(&needed.digest, digest));
            }
        }
        Ok(Stored {
            descriptor: Descriptor {
                media_type: manifest.media_type.clone(),
                digest: digest.to_owned(),
                size: bytes.len() as u64,
            },
            bytes,
            manifest,
        })
    }

    /// The files of an artifact that [`super::Partial::put_files`] has made: as many as can be read from a registry.
    ///
    /// # Errors
    /// An artifact that is missing or cannot be unpacked.
    pub fn files(&self, artifact: &str) -> Result<Package, LayoutError> {
        let manifest = self.stored(artifact)?.manifest;
        let files = match manifest.blobs.last() {
            Some(layer) => {
                let mut blob = Hashed::new(self.blob(&layer.digest)?);
                let files = read_files(&mut blob);
                let found = blob.finish().map_err(file(&self.path))?;
                self.check(&layer.digest, found)?;
                files
            }
            None => Err(PackageError::Empty.into()),
        };
        files.map_err(|source| LayoutError::Artifact {
            path: self.path.clone(),
            digest: artifact.to_owned(),
            source,
        })
    }

    /// A blob that is not larger than a manifest may be.
    fn small(&self, digest: &str) -> Result<Vec<u8>, LayoutError> {
        let mut blob = self.blob(digest)?;
        if blob.limit() > MAX_MANIFEST {
            return Err(LayoutError::LargeManifest {
                path: self.path.clone(),
                digest: digest.to_owned(),
            });
        }
        let mut bytes = Vec::new();
        blob.read_to_end(&mut bytes).map_err(file(&self.path))?;
        self.check(digest, common::hex::of(&Sha256::digest(&bytes)))?;
        Ok(bytes)
    }

    /// Refuses content that is read again and is not what was verified: the file may be replaced meanwhile.
    fn check(&self, digest: &str, found: String) -> Result<(), LayoutError> {
        if found == hex(digest) {
            return Ok(());
        }
        Err(LayoutError::Digest {
            path: self.path.clone(),
            name: format!("{BLOBS}/{}", hex(digest)),
            found,
        })
    }

    /// Whether a blob is there, with this size.
    fn has(&self, blob: &Descriptor) -> bool {
        let found = self.blobs.get(&blob.digest);
        found.is_some_and(|(_, size)| *size == blob.size)
    }

    /// The bytes of a blob, which are not verified again: a registry compares them with their digest.
    ///
    /// # Errors
    /// One that is missing.
    pub fn blob(&self, digest: &str) -> Result<Take<File>, LayoutError> {
        let Some((at, size)) = self.blobs.get(digest) else {
            return Err(self.missing(digest, INDEX_FILE));
        };
        let mut opened = File::open(&self.path).map_err(file(&self.path))?;
        opened
            .seek(SeekFrom::Start(*at))
            .map_err(file(&self.path))?;
        Ok(opened.take(*size))
    }

    fn missing(&self, digest: &str, of: &str) -> LayoutError {
        LayoutError::Missing {
            path: self.path.clone(),
            digest: digest.to_owned(),
            of: of.to_owned(),
        }
    }
}

/// Bytes that are hashed while they are read.
struct Hashed<R> {
    inner: R,
    digest: Sha256,
}

impl<R: Read> Hashed<R> {
    fn new(inner: R) -> Self {
        Self {
            inner,
            digest: Sha256::new(),
        }
    }

    /// The sha256 of all bytes, also of those that were not read before.
    fn finish(mut self) -> io::Result<String> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(common::hex::of(&self.digest.finalize()))
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.digest.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

fn sha256(bytes: impl Read) -> io::Result<String> {
    Hashed::new(bytes).finish()
}

#[cfg(test)]
mod tests;
