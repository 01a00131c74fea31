//! Reads patches of a file. Each of its documents is a strategic merge patch that names its object, or a map with a list `patches`, as a
//! kustomization has it.

use serde_json::{Map, Value};

use super::error::PatchProblem;
use super::read_document;
use crate::api::installation::{ObjectPatch, PatchTarget};

/// Why a file of patches cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchFileError {
    /// A document cannot be read.
    #[error("document {number}: {problem}")]
    Document {
        /// Its number, from 1.
        number: usize,
        /// What is wrong.
        problem: PatchProblem,
    },
    /// An item of `patches` is not a patch.
    #[error(
        "document {number}: patches[{index}] has a patch, as text, and perhaps a target ({}); files (path) and options are not read",
        TARGET.join(", ")
    )]
    Entry {
        /// The number of the document.
        number: usize,
        /// The index of the item.
        index: usize,
    },
    /// The file has no patch.
    #[error(
        "there is no patch in it: write objects with the fields to change, or a list under patches:"
    )]
    Empty,
}

/// The fields of a target.
const TARGET: [&str; 7] = [
    "group",
    "version",
    "kind",
    "name",
    "namespace",
    "labelSelector",
    "annotationSelector",
];

/// Reads the patches of a file.
///
/// # Errors
/// [`PatchFileError`].
pub fn read_patches(text: &str) -> Result<Vec<ObjectPatch>, PatchFileError> {
    let mut patches = Vec::new();
    for (index, section) in split_documents(text).into_iter().enumerate() {
        let number = index + 1;
        let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
        if section.lines().all(is_blank) {
            continue;
        }
        let document = read_document(section);
        let document = document.map_err(|problem| PatchFileError::Document { number, problem })?;
        match document.get("patches").and_then(Value::as_array) {
            Some(entries) => {
                for (index, entry) in entries.iter().enumerate() {
                    let read = read_entry(entry);
                    patches.push(read.ok_or(PatchFileError::Entry { number, index })?);
                }
            }
            None => patches.push(ObjectPatch {
                target: None,
                patch: section.trim_end().to_owned() + "\n",
            }),
        }
    }
    match patches.is_empty() {
        true => Err(PatchFileError::Empty),
        false => Ok(patches),
    }
}

/// Reads an item of a list `patches`. `None` if it has other fields, which would otherwise be dropped silently.
fn read_entry(entry: &Value) -> Option<ObjectPatch> {
    let has_only = |map: &Map<String, Value>, known: &[&str]| {
        map.keys().all(|name| known.contains(&name.as_str()))
    };
    let map = entry.as_object()?;
    let target = map.get("target");
    let target = target.map(|target| {
        let target = target.as_object().filter(|map| has_only(map, &TARGET))?;
        serde_json::from_value::<PatchTarget>(Value::Object(target.clone())).ok()
    });
    has_only(map, &["target", "patch"]).then_some(ObjectPatch {
        target: match target {
            Some(target) => Some(target?),
            None => None,
        },
        patch: map.get("patch")?.as_str()?.to_owned(),
    })
}

/// Splits a file at the lines that separate documents, as its YAML is read.
fn split_documents(text: &str) -> Vec<&str> {
    let mut sections = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if line.starts_with("---") {
            sections.push(text.get(start..at).unwrap_or_default());
            start = end;
        }
        at = end;
    }
    sections.push(text.get(start..).unwrap_or_default());
    sections
}
