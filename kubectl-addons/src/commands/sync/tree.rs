//! The state of the watched directory between two passes, and since when it is unchanged.

use std::path::Path;

use addons_loops::election::LeaderRevision;
use addons_sources::directory::{self, DirectoryError, Stamps};
use common::directory::{DirectoryFile, digest_files};
use tokio::time::Instant;

/// A directory that is read repeatedly.
#[derive(Debug)]
pub struct WatchedTree {
    /// Its absolute path.
    pub path: String,
    /// When its current content was first read.
    pub since: Instant,
    /// The revision that a process with this content can lead with.
    pub revision: LeaderRevision,
    stamps: Stamps,
}

impl WatchedTree {
    /// Creates the state of a directory that was not read yet.
    pub fn new(path: String) -> Self {
        Self {
            path,
            since: Instant::now(),
            revision: LeaderRevision::Missing,
            stamps: Stamps::default(),
        }
    }

    /// Reads the files of the directory. A file that cannot be read now leaves the revision unchanged.
    ///
    /// # Errors
    /// [`DirectoryError`]: the directory cannot be read as a whole.
    pub async fn read(&mut self) -> Result<Vec<DirectoryFile>, DirectoryError> {
        let reading = self.reading().await;
        let reading = reading.inspect_err(|_| self.revision = LeaderRevision::Missing)?;
        self.stamps = reading.stamps;
        match digest_files(&reading.files) {
            Some(digest) => self.revision = LeaderRevision::Whole(digest),
            None if self.revision == LeaderRevision::Missing => {
                self.revision = LeaderRevision::Partial
            }
            None => {}
        }
        Ok(reading.files)
    }

    async fn reading(&mut self) -> Result<directory::DirectoryReading, DirectoryError> {
        let root = Path::new(&self.path);
        let reading = directory::read(root, &self.stamps)?;
        if reading.is_whole() && reading.stamps == self.stamps {
            return Ok(reading);
        }
        self.since = Instant::now();
        directory::read_until_stable(root).await
    }

    /// Whether the directory changed or cannot be read. Reading it returns the error.
    pub fn is_changed(&self) -> bool {
        let stamps = directory::read_stamps(Path::new(&self.path));
        self.revision == LeaderRevision::Missing
            || !stamps.is_ok_and(|stamps| stamps == self.stamps)
    }
}
