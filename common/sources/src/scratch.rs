//! Temporary folders that may hold keys. They go away when they are dropped, and all at once where the program ends without dropping
//! what it holds: at a signal, or while a thread is still at work.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

static FOLDERS: Mutex<Folders> = Mutex::new(Folders {
    there: BTreeSet::new(),
    closed: false,
});

/// The folders of this program.
struct Folders {
    there: BTreeSet<PathBuf>,
    /// The program is about to end, and makes no more.
    closed: bool,
}

/// A temporary folder that only this user can look into.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// A new folder, whose name begins with `prefix`.
    ///
    /// # Errors
    /// It cannot be made; the program is about to end.
    pub fn new(prefix: &str) -> io::Result<Self> {
        // Held until the folder is noted: the end of the program would not know it.
        let mut folders = folders();
        if folders.closed {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        folders.there.insert(folder.path().to_owned());
        Ok(Self(folder))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Held until it is gone: the program may end while this thread is half-way.
        let mut folders = folders();
        let _ = std::fs::remove_dir_all(self.0.path());
        folders.there.remove(self.0.path());
    }
}

/// Removes every folder that is still there, for a program that is about to end. None is made from then on.
pub fn remove_all() {
    let mut folders = folders();
    folders.closed = true;
    for folder in &folders.there {
        // A program that still writes into it may be faster once.
        if std::fs::remove_dir_all(folder).is_err() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn folders() -> MutexGuard<'static, Folders> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}
