//! Temporary folders that may contain keys. A folder is removed when it is dropped. [`remove_all`] removes
//! all folders when the program ends without dropping its values, on a signal or while a thread is still
//! working.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

static FOLDERS: Mutex<Folders> = Mutex::new(Folders {
    there: BTreeSet::new(),
    closed: false,
});

/// The temporary folders of this program.
struct Folders {
    there: BTreeSet<PathBuf>,
    /// Whether the program is about to end. It then creates no more folders.
    closed: bool,
}

/// A temporary folder that only this user can access.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// Creates a folder whose name begins with `prefix`.
    ///
    /// # Errors
    /// The folder cannot be created, or the program is about to end.
    pub fn new(prefix: &str) -> io::Result<Self> {
        // Held until the folder is recorded, so that `remove_all` cannot miss it.
        let mut folders = lock_folders();
        if folders.closed {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        folders.there.insert(folder.path().to_owned());
        Ok(Self(folder))
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Held until the folder is removed, because the program may end in the meantime.
        let mut folders = lock_folders();
        let _ = std::fs::remove_dir_all(self.0.path());
        folders.there.remove(self.0.path());
    }
}

/// Removes all folders before the program ends. No folder can be created afterwards.
pub fn remove_all() {
    let mut folders = lock_folders();
    folders.closed = true;
    for folder in &folders.there {
        // A child that still writes to the folder can make the first try fail.
        if std::fs::remove_dir_all(folder).is_err() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn lock_folders() -> MutexGuard<'static, Folders> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}
