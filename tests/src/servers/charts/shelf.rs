//! Charts, packed and listed by the real helm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::control_plane::binaries;
use crate::guard::Folder;

/// A folder with archives and an index of them.
pub struct Shelf {
    helm: PathBuf,
    folder: Folder,
}

impl Shelf {
    /// An empty one.
    ///
    /// # Errors
    /// Where there is no helm.
    pub fn new() -> Result<Self> {
        Ok(Self {
            helm: binaries::helm()?,
            folder: Folder::new("kubectl-addons-charts-")?,
        })
    }

    /// The folder that is served.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Packs a chart of these files; `Chart.yaml` with name and version is written where it is not among them.
    ///
    /// # Errors
    /// Of helm.
    pub fn chart(&self, name: &str, version: &str, files: &[(&str, &str)]) -> Result<PathBuf> {
        let folder = Folder::new("kubectl-addons-chart-")?;
        let chart = folder.path().join(name);
        write(&chart, name, version, files)?;
        self.helm(&["package", &chart.to_string_lossy(), "-d", "."])?;
        Ok(self.path().join(format!("{name}-{version}.tgz")))
    }

    /// Lists the archives; with `url` by absolute URLs below it.
    ///
    /// # Errors
    /// Of helm.
    pub fn index(&self, url: Option<&str>) -> Result<()> {
        match url {
            Some(url) => self.helm(&["repo", "index", ".", "--url", url]),
            None => self.helm(&["repo", "index", "."]),
        }
    }

    /// The text of the index.
    ///
    /// # Errors
    /// There is none.
    pub fn read_index(&self) -> Result<String> {
        Ok(fs::read_to_string(self.path().join("index.yaml"))?)
    }

    /// Writes another index.
    ///
    /// # Errors
    /// Of the disk.
    pub fn write_index(&self, text: &str) -> Result<()> {
        Ok(fs::write(self.path().join("index.yaml"), text)?)
    }

    fn helm(&self, args: &[&str]) -> Result<()> {
        let home = Folder::new("kubectl-addons-helm-home-")?;
        let output = Command::new(&self.helm)
            .args(args)
            .env_clear()
            .env("HOME", home.path())
            .current_dir(self.path())
            .stdin(Stdio::null())
            .output()
            .context("cannot start helm")?;
        if !output.status.success() {
            bail!("helm {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

/// Writes the files of a chart into a folder.
///
/// # Errors
/// Of the disk.
pub fn write(folder: &Path, name: &str, version: &str, files: &[(&str, &str)]) -> Result<()> {
    let about = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    for (path, text) in [("Chart.yaml", about.as_str())].iter().chain(files) {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}
