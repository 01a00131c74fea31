//! Collects the content of an archive that is being created in `FILE.partial/blobs/sha256/HEX`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use addons_render::package::Package;
use common::manifest::digest::sha256;
use common::oci::layout::{LAYOUT, NamedManifest, write};
use common::oci::manifest::{Descriptor, IMAGE};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use tempfile::NamedTempFile;

use super::{
    BLOBS, HashingReader, INDEX_FILE, LAYOUT_FILE, LayoutArchiveError, MAX_BLOB, file_error, hex,
};
use crate::registry::Blob;
use crate::signature::signing::BUNDLE_TYPE;

/// The file in the folder that is locked to prevent a second export to the same archive.
const LOCK: &str = "lock";
/// The prefix of the names of incomplete files.
const IN_PART: &str = "part-";
/// The media type of the layer of an artifact.
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The media type of the empty configuration of an artifact.
const NO_CONFIG: &str = "application/vnd.oci.empty.v1+json";

/// The content that was collected for an archive.
#[derive(Debug)]
pub struct PartialArchive {
    archive: PathBuf,
    folder: PathBuf,
    /// Held until the archive is written.
    _lock: File,
    /// The blobs that this run needs. An earlier run may have left more.
    used: BTreeSet<String>,
}

impl PartialArchive {
    /// Continues an interrupted export to the same archive, or starts a new one. Incomplete blobs are
    /// discarded.
    ///
    /// # Errors
    /// The folder cannot be created, or another export to the same archive is running.
    pub fn open(archive: &Path) -> Result<Self, LayoutArchiveError> {
        let mut name = archive.as_os_str().to_owned();
        name.push(".partial");
        let folder = PathBuf::from(name);
        fs::create_dir_all(folder.join(BLOBS)).map_err(file_error(&folder))?;
        let lock = File::create(folder.join(LOCK)).map_err(file_error(&folder))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LayoutArchiveError::Locked { folder }),
            Err(TryLockError::Error(error)) => return Err(file_error(&folder)(error)),
        }
        for entry in fs::read_dir(&folder).map_err(file_error(&folder))? {
            let entry = entry.map_err(file_error(&folder))?;
            if entry.file_name().to_string_lossy().starts_with(IN_PART) {
                fs::remove_file(entry.path()).map_err(file_error(&folder))?;
            }
        }
        Ok(Self {
            archive: archive.to_owned(),
            folder,
            _lock: lock,
            used: BTreeSet::new(),
        })
    }

    /// Whether a blob was collected. If so, it becomes part of the archive. It was verified before it got its
    /// name and is verified again when the archive is written.
    pub fn has(&mut self, blob: &Descriptor) -> bool {
        let found = fs::symlink_metadata(self.blob(&blob.digest));
        let is_there = found.is_ok_and(|found| found.is_file() && found.len() == blob.size);
        if is_there {
            self.used.insert(blob.digest.clone());
        }
        is_there
    }

    /// Adds bytes and returns their digest.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn put(&mut self, bytes: &[u8]) -> Result<String, LayoutArchiveError> {
        let digest = format!("sha256:{}", sha256(bytes));
        let mut beside = self.new_part_file()?;
        beside.write_all(bytes).map_err(file_error(beside.path()))?;
        self.persist(beside, &digest)?;
        Ok(digest)
    }

    /// Adds an artifact of type `kind` and returns the descriptor of its manifest. The files are its only
    /// layer, which [`crate::image`] can read. The same content always has the same digest.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn put_files(
        &mut self,
        kind: &str,
        files: &Package,
    ) -> Result<Descriptor, LayoutArchiveError> {
        let layer = tgz(files).map_err(file_error(kind))?;
        self.put_artifact(kind, (LAYER, &layer), None)
    }

    /// Adds a Sigstore bundle that signs `subject`, and returns the descriptor of its manifest.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn put_signature(
        &mut self,
        subject: &Descriptor,
        bundle: &str,
    ) -> Result<Descriptor, LayoutArchiveError> {
        let layer = (BUNDLE_TYPE, bundle.as_bytes());
        self.put_artifact(BUNDLE_TYPE, layer, Some(subject))
    }

    /// Adds an artifact with one layer of this media type and these bytes.
    fn put_artifact(
        &mut self,
        kind: &str,
        (layer_type, layer): (&str, &[u8]),
        subject: Option<&Descriptor>,
    ) -> Result<Descriptor, LayoutArchiveError> {
        let mut described = BTreeMap::new();
        for (part, media_type, bytes) in [
            ("config", NO_CONFIG, b"{}".as_slice()),
            ("layer", layer_type, layer),
        ] {
            let descriptor = Descriptor {
                media_type: media_type.to_owned(),
                digest: self.put(bytes)?,
                size: bytes.len() as u64,
            };
            described.insert(part, descriptor);
        }
        let mut manifest = json!({
            "schemaVersion": 2,
            "mediaType": IMAGE,
            "artifactType": kind,
            "config": described.get("config"),
            "layers": [described.get("layer")],
        });
        if let (Some(subject), Some(fields)) = (subject, manifest.as_object_mut()) {
            fields.insert("subject".to_owned(), json!(subject));
        }
        let bytes = manifest.to_string().into_bytes();
        Ok(Descriptor {
            media_type: IMAGE.to_owned(),
            digest: self.put(&bytes)?,
            size: bytes.len() as u64,
        })
    }

    /// Adds a blob of a registry, which is verified while it arrives. `on` is called with the number of bytes
    /// received so far.
    ///
    /// # Errors
    /// The registry returns an error or other content, or a file cannot be written.
    pub async fn fetch(
        &mut self,
        blob: &Descriptor,
        mut bytes: Blob<'_, '_>,
        mut on: impl FnMut(u64),
    ) -> Result<(), LayoutArchiveError> {
        let digest = blob.digest.clone();
        if blob.size > MAX_BLOB {
            return Err(LayoutArchiveError::TooLarge { digest });
        }
        let mut beside = self.new_part_file()?;
        let mut fetched = 0;
        while let Some(chunk) = bytes.next().await? {
            beside
                .write_all(&chunk)
                .map_err(file_error(beside.path()))?;
            fetched += chunk.len() as u64;
            on(fetched);
        }
        self.persist(beside, &digest)
    }

    /// Writes the archive, removes the folder and returns the size of the archive in bytes. The same content
    /// always gives an identical archive.
    ///
    /// # Errors
    /// A blob was changed, or a file cannot be written.
    pub fn finish(self, named: &[NamedManifest]) -> Result<u64, LayoutArchiveError> {
        let beside = self.new_part_file()?;
        let mut builder = tar::Builder::new(io::BufWriter::new(beside.as_file()));
        let failed = || file_error(&self.archive);
        for (name, bytes) in [
            (LAYOUT_FILE, LAYOUT.as_bytes()),
            (INDEX_FILE, write(named).as_slice()),
        ] {
            let mut header = tar_header(bytes.len() as u64);
            let added = builder.append_data(&mut header, name, bytes);
            added.map_err(failed())?;
        }
        for digest in &self.used {
            let path = self.blob(digest);
            let blob = File::open(&path).map_err(file_error(&path))?;
            let size = blob.metadata().map_err(file_error(&path))?.len();
            let mut bytes = HashingReader::new(blob);
            let mut header = tar_header(size);
            let name = format!("{BLOBS}/{}", hex(digest));
            let added = builder.append_data(&mut header, name, (&mut bytes).take(size));
            added.map_err(failed())?;
            if bytes.hex() != hex(digest) {
                fs::remove_file(&path).map_err(file_error(&path))?;
                return Err(LayoutArchiveError::Changed { path });
            }
        }
        let mut written = builder.into_inner().map_err(failed())?;
        written.flush().map_err(failed())?;
        drop(written);
        let size = beside.as_file().metadata().map_err(failed())?.len();
        let persisted = beside.persist(&self.archive);
        persisted.map_err(|error| file_error(&self.archive)(error.error))?;
        fs::remove_dir_all(&self.folder).map_err(file_error(&self.folder))?;
        Ok(size)
    }

    fn new_part_file(&self) -> Result<NamedTempFile, LayoutArchiveError> {
        NamedTempFile::with_prefix_in(IN_PART, &self.folder).map_err(file_error(&self.folder))
    }

    fn persist(&mut self, beside: NamedTempFile, digest: &str) -> Result<(), LayoutArchiveError> {
        let path = self.blob(digest);
        let persisted = beside.persist(&path);
        persisted.map_err(|error| file_error(&path)(error.error))?;
        self.used.insert(digest.to_owned());
        Ok(())
    }

    fn blob(&self, digest: &str) -> PathBuf {
        self.folder.join(BLOBS).join(hex(digest))
    }
}

fn tar_header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    header
}

fn tgz(files: &Package) -> std::io::Result<Vec<u8>> {
    let encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut builder = tar::Builder::new(encoder);
    for one in files.files() {
        let mut header = tar_header(one.bytes.len() as u64);
        builder.append_data(&mut header, &one.path, one.bytes.as_slice())?;
    }
    builder.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_export_runs_and_removes_incomplete_blobs() {
        let home = tempfile::tempdir().unwrap();
        let archive = home.path().join("site.tar");
        let mut first = PartialArchive::open(&archive).unwrap();
        let digest = first.put(b"a").unwrap();
        let folder = home.path().join("site.tar.partial");
        let torn = folder.join("part-x1");
        fs::write(&torn, b"half").unwrap();
        let second = PartialArchive::open(&archive).map(drop);
        assert!(
            matches!(second, Err(LayoutArchiveError::Locked { .. })),
            "{second:?}"
        );
        assert!(torn.exists());
        // As if the export had been killed.
        drop(first);
        let mut third = PartialArchive::open(&archive).unwrap();
        assert!(!torn.exists());
        let blob = Descriptor {
            media_type: String::new(),
            digest,
            size: 1,
        };
        assert!(third.has(&blob));
        third.finish(&[]).unwrap();
        assert!(archive.exists() && !folder.exists());
    }
}
