//! The starter catalogue, and the content of its versions in the corpus.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use common::api::catalogue::{AddonCatalogue, AddonVersion};
use serde_json::Value;

/// The catalogue.
pub const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../deploy/catalogue/catalogue.yaml"
);
/// The site with the files of public repositories, by commit and path.
const FILES: &str = "https://raw.githubusercontent.com/";
/// The site with the repositories.
const REPOSITORIES: &str = "https://github.com/";

/// Reads the catalogue.
///
/// # Errors
/// It cannot be read.
pub fn read() -> Result<AddonCatalogue> {
    let text = fs::read_to_string(PATH).context(PATH)?;
    serde_saphyr::from_str(&text).context(PATH)
}

/// A file or folder of a repository at a commit.
#[derive(Debug, PartialEq, Eq)]
pub struct UpstreamPath {
    /// `OWNER/NAME`.
    pub repository: String,
    /// 40 hex digits.
    pub commit: String,
    /// In the repository.
    pub path: String,
    /// Whether it is read as one file.
    pub is_file: bool,
}

impl UpstreamPath {
    /// Returns where a version is read from; `None` if that is no commit of a public repository.
    #[must_use]
    pub fn read(version: &AddonVersion) -> Option<Self> {
        if let Some(url) = &version.source.url {
            let mut parts = url.manifest.strip_prefix(FILES)?.splitn(4, '/');
            let (owner, name) = (parts.next()?, parts.next()?);
            return Some(Self {
                repository: format!("{owner}/{name}"),
                commit: parts.next()?.to_owned(),
                path: parts.next()?.to_owned(),
                is_file: true,
            });
        }
        let git = version.source.git.as_ref()?;
        Some(Self {
            repository: git.remote.strip_prefix(REPOSITORIES)?.to_owned(),
            commit: git.r#ref.as_ref()?.commit.clone()?,
            path: git.path.clone()?,
            is_file: false,
        })
    }
}

/// The versions in the corpus `starter`, as its list describes them.
#[derive(Debug)]
pub struct Corpus {
    folder: PathBuf,
    listed: Vec<Value>,
}

impl Corpus {
    /// Reads the list of the corpus in `folder`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let list = fs::read(folder.join("sources.json"))?;
        Ok(Self {
            folder: folder.to_owned(),
            listed: serde_json::from_slice(&list)?,
        })
    }

    /// Returns what the list says about a path at a commit.
    #[must_use]
    pub fn find(&self, upstream: &UpstreamPath) -> Option<&Value> {
        let UpstreamPath {
            repository,
            commit,
            path,
            ..
        } = upstream;
        let is_it = |one: &&Value| {
            one["repository"] == **repository && one["commit"] == **commit && one["path"] == **path
        };
        self.listed.iter().find(is_it)
    }

    /// Returns the file of a single manifest, or the folder of a chart or of several manifests.
    #[must_use]
    pub fn content(&self, listed: &Value) -> Option<PathBuf> {
        let folder = self.folder.join(listed["folder"].as_str()?);
        let file = Path::new(listed["path"].as_str()?).file_name()?;
        let is_single = listed["sha256"].is_string();
        Some(if is_single { folder.join(file) } else { folder })
    }
}
