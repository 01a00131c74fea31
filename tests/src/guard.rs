//! Child processes and folders that never outlive this process, however it ends.

use std::io;
use std::path::Path;

use tempfile::TempDir;

use crate::times;

pub use addons_control_plane::guard::{Guarded, Leash, command, spawn, spawn_to_talk};

/// A temporary folder: removed when dropped, or when this process has ended.
#[derive(Debug)]
pub struct Folder(TempDir);

impl Folder {
    /// A new folder whose name begins with `prefix`.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn new(prefix: &str) -> io::Result<Self> {
        // Nearly every test that takes time begins with a folder: the home of a user, or the data of a server.
        times::measure_this_test();
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        addons_control_plane::guard::remove_at_the_end(folder.path())?;
        Ok(Self(folder))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
