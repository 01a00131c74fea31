//! An archive that was verified as a whole: every blob by its digest, and that none is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Take};
use std::path::{Path, PathBuf};

use common::airgap::layout::{Named, read};
use common::airgap::manifest::{Descriptor, Manifest, is_digest};
use sha2::{Digest as _, Sha256};
use tar::EntryType;

use super::{BLOBS, INDEX_FILE, LAYOUT_FILE, LayoutError, MAX_BLOB, MAX_MANIFEST, file, hex};

/// Files of an archive.
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
        let archive = Self {
            path: path.to_owned(),
            blobs,
            named,
        };
        for one in &archive.named {
            archive.tree(&one.descriptor)?;
        }
        Ok(archive)
    }

    /// What the archive names, an image before what refers to it.
    #[must_use]
    pub fn named(&self) -> &[Named] {
        &self.named
    }

    /// A manifest with those that it needs, each after those that it needs itself.
    ///
    /// # Errors
    /// A manifest or a blob that is missing or cannot be used.
    pub fn tree(&self, root: &Descriptor) -> Result<Vec<Stored>, LayoutError> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        let mut left = vec![(root.clone(), None)];
        while let Some((descriptor, read)) = left.pop() {
            if let Some(stored) = read {
                found.push(stored);
                continue;
            }
            if !seen.insert(descriptor.digest.clone()) {
                continue;
            }
            let stored = self.stored(&descriptor)?;
            let needed = stored.manifest.manifests.clone();
            // It comes after what it needs.
            left.push((descriptor, Some(stored)));
            left.extend(needed.into_iter().map(|one| (one, None)));
        }
        Ok(found)
    }

    fn stored(&self, descriptor: &Descriptor) -> Result<Stored, LayoutError> {
        let digest = descriptor.digest.clone();
        let bytes = self.small(descriptor)?;
        let read = Manifest::read(&bytes);
        let manifest = read.map_err(|source| LayoutError::Manifest { digest, source })?;
        for needed in manifest.blobs.iter().chain(&manifest.manifests) {
            let size = self.blobs.get(&needed.digest).map(|(_, size)| *size);
            if size != Some(needed.size) {
                return Err(self.missing(&needed.digest, &descriptor.digest));
            }
        }
        Ok(Stored {
            descriptor: descriptor.clone(),
            bytes,
            manifest,
        })
    }

    /// A small blob.
    ///
    /// # Errors
    /// One that is missing or not small.
    pub fn small(&self, descriptor: &Descriptor) -> Result<Vec<u8>, LayoutError> {
        let digest = &descriptor.digest;
        let (_, size) = self.blobs.get(digest).copied().unwrap_or_default();
        if size != descriptor.size || size > MAX_MANIFEST || size == 0 {
            return Err(self.missing(digest, INDEX_FILE));
        }
        let mut bytes = Vec::new();
        let read = self.blob(digest)?.read_to_end(&mut bytes);
        read.map_err(file(&self.path))?;
        Ok(bytes)
    }

    /// The bytes of a blob.
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

fn sha256(bytes: &mut impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match bytes.read(&mut buffer)? {
            0 => break,
            read => digest.update(buffer.get(..read).unwrap_or_default()),
        }
    }
    Ok(common::hex::of(&digest.finalize()))
}

#[cfg(test)]
mod tests;
