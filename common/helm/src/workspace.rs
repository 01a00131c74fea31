//! A private folder for one job of helm: its home, its caches, the chart. Gone when dropped.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use addons_sources::scratch::Scratch;
use common::render::package::Package;

use super::HelmError;

/// Folders that helm may write to, and the variables that say so. No plugins are loaded.
const FOLDERS: [(&str, &str); 6] = [
    ("HOME", "home"),
    ("TMPDIR", "tmp"),
    ("HELM_CACHE_HOME", "cache"),
    ("HELM_CONFIG_HOME", "config"),
    ("HELM_DATA_HOME", "data"),
    ("HELM_PLUGINS", "plugins"),
];

/// The folder; only this user may look into it.
#[derive(Debug)]
pub(super) struct Workspace(Scratch);

impl Workspace {
    /// A new one.
    pub(super) fn new() -> Result<Self, HelmError> {
        let folder =
            Scratch::new("kubectl-addons-helm-").map_err(|source| HelmError::Workspace {
                what: std::env::temp_dir().display().to_string(),
                source,
            })?;
        let workspace = Self(folder);
        for (_, name) in FOLDERS {
            workspace.folder(Path::new(name))?;
        }
        Ok(workspace)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Variables that keep helm inside.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, PathBuf)> + '_ {
        FOLDERS
            .into_iter()
            .map(|(variable, name)| (variable, self.path().join(name)))
    }

    /// Writes a file that only this user can read; its path is relative and does not lead out.
    pub(super) fn write(&self, name: &Path, bytes: &[u8]) -> Result<PathBuf, HelmError> {
        if let Some(folder) = name.parent() {
            self.folder(folder)?;
        }
        let path = self.path().join(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options
            .open(&path)
            .and_then(|mut file| file.write_all(bytes));
        match written {
            Ok(()) => Ok(path),
            Err(source) => Err(wrong(&path, source)),
        }
    }

    /// Writes a chart: a folder, or the archive as it is; the path to give to helm.
    pub(super) fn chart(&self, package: &Package) -> Result<PathBuf, HelmError> {
        if let Some(file) = package.as_file() {
            return self.write(Path::new("chart.tgz"), &file.bytes);
        }
        let folder = Path::new("chart");
        for file in package.files() {
            self.write(&folder.join(&file.path), &file.bytes)?;
        }
        Ok(self.path().join(folder))
    }

    fn folder(&self, name: &Path) -> Result<(), HelmError> {
        let path = self.path().join(name);
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(|source| wrong(&path, source))
    }
}

/// Reads a file that helm made, `limit` bytes at most; `None` where it has more.
pub(super) fn read(path: &Path, limit: usize) -> Result<Option<Vec<u8>>, HelmError> {
    let size = fs::symlink_metadata(path)
        .map_err(|source| wrong(path, source))?
        .len();
    if size > limit as u64 {
        return Ok(None);
    }
    fs::read(path)
        .map(Some)
        .map_err(|source| wrong(path, source))
}

/// An error about a file.
pub(super) fn wrong(path: &Path, source: std::io::Error) -> HelmError {
    HelmError::Workspace {
        what: path.display().to_string(),
        source,
    }
}
