//! Manifests: YAML as Kubernetes' own loader reads it, object keys, digests, and ownership marks.

mod contract;
pub mod digest;
pub mod key;
pub mod kinds;
pub mod managed_fields;
pub mod normal;
pub mod ownership;
pub mod parse;
pub mod yaml;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The endings of files with manifests.
pub const FILE_ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// Whether a file has the ending of a manifest.
#[must_use]
pub fn is_manifest_file(name: &str) -> bool {
    FILE_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// An object of a manifest, with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// A JSON object with apiVersion, kind and metadata.name. Shared, because many add-ons of a directory are planned together.
    pub object: Arc<Value>,
    /// The position where it was read.
    pub place: FilePosition,
}

/// A position in the input. It prints as `FILE:LINE` or `FILE:LINE:COLUMN` if these are known, else as `FILE`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FilePosition {
    /// File name or URL, as the user knows it.
    pub file: String,
    /// Line of its first byte, from 1; 0 if unknown.
    pub line: usize,
    /// Column, from 1; 0 if unknown.
    pub column: usize,
}

impl std::fmt::Display for FilePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        Ok(())
    }
}
