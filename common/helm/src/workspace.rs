//! A private folder for one run of helm, with its home, its caches and the chart. It is deleted when dropped.

use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use addons_render::package::Package;
use addons_sources::platform;
use addons_sources::scratch::Scratch;

use super::{HelmError, schema};

/// Folders that helm may write to, and the variables that name them. No plugins are loaded.
const FOLDERS: [(&str, &str); 6] = [
    (platform::HOME, "home"),
    (platform::TEMPORARY, "tmp"),
    ("HELM_CACHE_HOME", "cache"),
    ("HELM_CONFIG_HOME", "config"),
    ("HELM_DATA_HOME", "data"),
    ("HELM_PLUGINS", "plugins"),
];

/// The folder. Only the current user can access it.
#[derive(Debug)]
pub(super) struct Workspace(Scratch);

impl Workspace {
    /// Creates a new folder.
    pub(super) fn new() -> Result<Self, HelmError> {
        let folder =
            Scratch::new("kubectl-addons-helm-").map_err(|source| HelmError::Workspace {
                what: std::env::temp_dir().display().to_string(),
                source,
            })?;
        let workspace = Self(folder);
        for (_, name) in FOLDERS {
            workspace.create_folder(Path::new(name))?;
        }
        Ok(workspace)
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the variables that make helm use these folders.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, PathBuf)> + '_ {
        FOLDERS
            .into_iter()
            .map(|(variable, name)| (variable, self.path().join(name)))
    }

    /// Writes a file that only the current user can read. Paths that lead out are refused; on Windows, one that begins with `C:` does.
    pub(super) fn write(&self, name: &Path, bytes: &[u8]) -> Result<PathBuf, HelmError> {
        if !name
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
        {
            return Err(file_error(name, std::io::ErrorKind::InvalidInput.into()));
        }
        if let Some(folder) = name.parent() {
            self.create_folder(folder)?;
        }
        let path = self.path().join(name);
        let written = platform::create_private(&path);
        match written.and_then(|mut file| file.write_all(bytes)) {
            Ok(()) => Ok(path),
            Err(source) => Err(file_error(&path, source)),
        }
    }

    /// Writes a chart, as a folder or as an archive, and returns its path for helm. Every chart is written here, so this checks that no
    /// schema leads helm out of the chart.
    pub(super) fn write_chart(&self, package: &Package) -> Result<PathBuf, HelmError> {
        schema::check(package)?;
        if let Some(file) = package.as_file() {
            return self.write(Path::new("chart.tgz"), &file.bytes);
        }
        let folder = Path::new("chart");
        for file in package.files() {
            self.write(&folder.join(&file.path), &file.bytes)?;
        }
        Ok(self.path().join(folder))
    }

    fn create_folder(&self, name: &Path) -> Result<(), HelmError> {
        let path = self.path().join(name);
        platform::create_private_folder(&path).map_err(|source| file_error(&path, source))
    }
}

/// Reads a file that helm wrote; `None` if it has more than `limit` bytes.
pub(super) fn read_limited(path: &Path, limit: usize) -> Result<Option<Vec<u8>>, HelmError> {
    let size = fs::symlink_metadata(path)
        .map_err(|source| file_error(path, source))?
        .len();
    if size > limit as u64 {
        return Ok(None);
    }
    fs::read(path)
        .map(Some)
        .map_err(|source| file_error(path, source))
}

/// Returns an error about a file.
pub(super) fn file_error(path: &Path, source: std::io::Error) -> HelmError {
    HelmError::Workspace {
        what: path.display().to_string(),
        source,
    }
}
