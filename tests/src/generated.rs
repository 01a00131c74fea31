//! Files of the project that are written from other sources. An offline test compares them with what would be written.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::{crds, lifecycle, reference, schemas, trust};

/// Files in one folder that follow from one kind of source.
pub struct Generated {
    /// The name by which `generate` writes these files alone.
    pub name: &'static str,
    /// The folder, from the root of the repository.
    pub folder: &'static str,
    /// What the files follow from, as the end of a sentence: `the Rust types say`.
    pub sources: &'static str,
    /// Names and texts of the files.
    pub files: fn() -> Result<Vec<(String, String)>>,
}

/// Files that follow from this repository.
pub const FROM_THIS_REPOSITORY: [Generated; 4] = [
    Generated {
        name: "crds",
        folder: "deploy/crds",
        sources: "the Rust types say",
        files: crds::files,
    },
    Generated {
        name: "schemas",
        folder: "deploy/schemas",
        sources: "the Rust types say",
        files: schemas::files,
    },
    Generated {
        name: "reference",
        folder: "kubectl-addons/docs",
        sources: "the command line and the definitions say",
        files: reference::files,
    },
    Generated {
        name: "security",
        folder: ".",
        sources: "the trust model says",
        files: trust::files,
    },
];

/// The table of APIs, which Go downloads sources of Kubernetes for.
pub const LIFECYCLE: Generated = Generated {
    name: "lifecycle",
    folder: "common/advice/src/preflight",
    sources: "the sources of Kubernetes say",
    files: lifecycle::files,
};

impl Generated {
    /// Writes the files.
    ///
    /// # Errors
    /// A source that cannot be read; a file that cannot be written.
    pub fn write(&self) -> Result<()> {
        for (name, text) in (self.files)()? {
            let path = self.path(&name);
            fs::write(&path, text).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    /// Compares the files with what [`Generated::write`] would write.
    ///
    /// # Errors
    /// A source or file that cannot be read; the first file that differs.
    pub fn check(&self) -> Result<()> {
        let files = (self.files)()?;
        ensure!(!files.is_empty(), "{}: no files", self.name);
        for (name, text) in files {
            let path = self.path(&name);
            let written = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            ensure!(
                written == text,
                "{}/{name} is not what {}; fix: cargo run -p addons-tests --bin generate {}",
                self.folder,
                self.sources,
                self.name
            );
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        root.join(self.folder).join(name)
    }
}
