//! Manifests: YAML as Kubernetes' own loader reads it, object keys, digests, ownership marks.

mod contract;
pub mod digest;
pub mod key;
pub mod kinds;
pub mod lost;
pub mod managed_fields;
pub mod normal;
pub mod ownership;
pub mod parse;
pub mod yaml;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One object of a manifest, and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The object: a JSON object with apiVersion, kind and metadata.name. Shared: a directory of many add-ons is planned as a whole.
    pub object: Arc<Value>,
    /// Where it was read.
    pub place: Place,
}

/// A place in the input: printed as `FILE:LINE` with a line, `FILE` without.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// File name or URL, as the user knows it.
    pub file: String,
    /// Line of its first byte, from 1; 0 = not known.
    pub line: usize,
    /// Column, from 1; 0 = not known.
    pub column: usize,
}

impl std::fmt::Display for Place {
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
