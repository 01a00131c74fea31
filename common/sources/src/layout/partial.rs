//! The content of an archive that is being made: `FILE.partial/blobs/sha256/HEX`.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use common::manifest::digest::sha256;
use common::oci::layout::{LAYOUT, Named, write};
use common::oci::manifest::Descriptor;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::{BLOBS, INDEX_FILE, LAYOUT_FILE, LayoutError, MAX_BLOB, file, hex};
use crate::registry::Blob;

/// The file in the folder that keeps a second export to the same archive out.
const LOCK: &str = "lock";
/// Begins the names of files that are not complete.
const IN_PART: &str = "part-";

/// What was fetched for an archive so far.
#[derive(Debug)]
pub struct Partial {
    archive: PathBuf,
    folder: PathBuf,
    /// Held until the archive is written.
    _lock: File,
    /// What this run needs: an earlier one may have left more.
    used: BTreeSet<String>,
}

/// Passes bytes on and computes their digest.
struct Hashing {
    file: File,
    digest: Sha256,
}

impl Partial {
    /// Goes on with what an interrupted export to the same archive left, but for blobs that it had in part.
    ///
    /// # Errors
    /// A folder that cannot be made; another export to the same archive is running.
    pub fn open(archive: &Path) -> Result<Self, LayoutError> {
        let mut name = archive.as_os_str().to_owned();
        name.push(".partial");
        let folder = PathBuf::from(name);
        fs::create_dir_all(folder.join(BLOBS)).map_err(file(&folder))?;
        let lock = File::create(folder.join(LOCK)).map_err(file(&folder))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LayoutError::Locked { folder }),
            Err(TryLockError::Error(error)) => return Err(file(&folder)(error)),
        }
        for entry in fs::read_dir(&folder).map_err(file(&folder))? {
            let entry = entry.map_err(file(&folder))?;
            if entry.file_name().to_string_lossy().starts_with(IN_PART) {
                fs::remove_file(entry.path()).map_err(file(&folder))?;
            }
        }
        Ok(Self {
            archive: archive.to_owned(),
            folder,
            _lock: lock,
            used: BTreeSet::new(),
        })
    }

    /// Whether a blob is there; it is part of the archive then. It was verified before it got its name, and is verified again when
    /// the archive is written.
    pub fn has(&mut self, blob: &Descriptor) -> bool {
        let found = fs::symlink_metadata(self.blob(&blob.digest));
        let is_there = found.is_ok_and(|found| found.is_file() && found.len() == blob.size);
        if is_there {
            self.used.insert(blob.digest.clone());
        }
        is_there
    }

    /// Adds some bytes; their digest.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn put(&mut self, bytes: &[u8]) -> Result<String, LayoutError> {
        let digest = format!("sha256:{}", sha256(bytes));
        let mut beside = self.beside()?;
        beside.write_all(bytes).map_err(file(beside.path()))?;
        self.persist(beside, &digest)?;
        Ok(digest)
    }

    /// Adds a blob of a registry, verified while it arrives. `on` hears how many of its bytes are there.
    ///
    /// # Errors
    /// What the registry gives wrong; a file that cannot be written.
    pub async fn fetch(
        &mut self,
        blob: &Descriptor,
        mut bytes: Blob<'_, '_>,
        mut on: impl FnMut(u64),
    ) -> Result<(), LayoutError> {
        let digest = blob.digest.clone();
        if blob.size > MAX_BLOB {
            return Err(LayoutError::TooLarge { digest });
        }
        let mut beside = self.beside()?;
        let mut fetched = 0;
        while let Some(chunk) = bytes.next().await? {
            beside.write_all(&chunk).map_err(file(beside.path()))?;
            fetched += chunk.len() as u64;
            on(fetched);
        }
        self.persist(beside, &digest)
    }

    /// Writes the archive and removes the folder; the bytes of the archive. One content gives one archive, bit by bit.
    ///
    /// # Errors
    /// A blob that was changed; a file that cannot be written.
    pub fn finish(self, named: &[Named]) -> Result<u64, LayoutError> {
        let beside = self.beside()?;
        let mut builder = tar::Builder::new(io::BufWriter::new(beside.as_file()));
        let failed = || file(&self.archive);
        for (name, bytes) in [
            (LAYOUT_FILE, LAYOUT.as_bytes()),
            (INDEX_FILE, write(named).as_slice()),
        ] {
            let mut header = header(bytes.len() as u64);
            let added = builder.append_data(&mut header, name, bytes);
            added.map_err(failed())?;
        }
        for digest in &self.used {
            let path = self.blob(digest);
            let blob = File::open(&path).map_err(file(&path))?;
            let size = blob.metadata().map_err(file(&path))?.len();
            let mut bytes = Hashing {
                file: blob,
                digest: Sha256::new(),
            };
            let mut header = header(size);
            let name = format!("{BLOBS}/{}", hex(digest));
            let added = builder.append_data(&mut header, name, (&mut bytes).take(size));
            added.map_err(failed())?;
            if bytes.hex() != hex(digest) {
                fs::remove_file(&path).map_err(file(&path))?;
                return Err(LayoutError::Changed { path });
            }
        }
        let mut written = builder.into_inner().map_err(failed())?;
        written.flush().map_err(failed())?;
        drop(written);
        let size = beside.as_file().metadata().map_err(failed())?.len();
        let persisted = beside.persist(&self.archive);
        persisted.map_err(|error| file(&self.archive)(error.error))?;
        fs::remove_dir_all(&self.folder).map_err(file(&self.folder))?;
        Ok(size)
    }

    fn beside(&self) -> Result<NamedTempFile, LayoutError> {
        NamedTempFile::with_prefix_in(IN_PART, &self.folder).map_err(file(&self.folder))
    }

    fn persist(&mut self, beside: NamedTempFile, digest: &str) -> Result<(), LayoutError> {
        let path = self.blob(digest);
        let persisted = beside.persist(&path);
        persisted.map_err(|error| file(&path)(error.error))?;
        self.used.insert(digest.to_owned());
        Ok(())
    }

    fn blob(&self, digest: &str) -> PathBuf {
        self.folder.join(BLOBS).join(hex(digest))
    }
}

impl Hashing {
    fn hex(self) -> String {
        common::hex::of(&self.digest.finalize())
    }
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.digest.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

pub(super) fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_export_at_a_time_clears_what_another_left_in_part() {
        let home = tempfile::tempdir().unwrap();
        let archive = home.path().join("site.tar");
        let mut first = Partial::open(&archive).unwrap();
        let digest = first.put(b"a").unwrap();
        let folder = home.path().join("site.tar.partial");
        let torn = folder.join("part-x1");
        fs::write(&torn, b"half").unwrap();
        let second = Partial::open(&archive).map(drop);
        assert!(
            matches!(second, Err(LayoutError::Locked { .. })),
            "{second:?}"
        );
        assert!(torn.exists());
        // As where it was killed.
        drop(first);
        let mut third = Partial::open(&archive).unwrap();
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
