//! Checks custom resources by the schema of their definition if the same command installs the definition. The API server cannot do so in
//! advance, because it does not serve the kind yet, and an invalid object would fail in the middle of the operation.
//!
//! The check covers structural schemas (apiextensions.k8s.io/v1): types, required and unknown fields, enums, bounds, lengths, patterns,
//! list keys, and the same inside `allOf`, `anyOf`, `oneOf` and `not`. As in the API server, defaults are applied first, and a null counts
//! as missing if it is not allowed. CEL rules (`x-kubernetes-validations`) and formats are left to the API server; a warning names each
//! definition with CEL rules once.
//!
//! The crate `jsonschema` is not used: it has 63 dependencies, JSON Schema has no pruning, int-or-string, nullable or embedded resources,
//! and its patterns are not Go's. `regex-lite` has no dependencies, is linear in time, and its `\d`, `\w` and `\s` are ASCII as in Go.

pub mod check;
pub mod mistakes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::manifest::key::{Gvk, ObjectKey};
use crate::manifest::kinds::traits::defined_kind;
use crate::manifest::{FilePosition, Manifest};
use crate::nearest::did_you_mean;
use check::{SchemaChecker, SchemaFinding};

/// Maximum number of problems that are listed.
const MAX_LISTED: usize = 50;

/// The schemas of the definitions of a command, for the kinds of which the same command has objects.
#[derive(Clone, Debug, Default)]
pub struct CrdSchemas {
    schemas: BTreeMap<Gvk, CrdSchema>,
}

/// The schema of one version of a definition.
#[derive(Clone, Debug)]
struct CrdSchema {
    /// Name of the definition.
    definition: String,
    /// The openAPIV3Schema.
    root: Value,
    /// Whether it has CEL rules.
    has_rules: bool,
}

/// All reasons why custom resources do not fit the schema of their definition, sorted by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The reasons; at least one.
    pub problems: Vec<SchemaProblem>,
}

/// Why a custom resource does not fit its schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaProblem {
    /// Position of the object.
    pub place: FilePosition,
    /// The object.
    pub key: ObjectKey,
    /// Path of the field: `spec.rules[2].host`.
    pub path: String,
    /// What is wrong: `must be an integer, not a string`.
    pub message: String,
    /// Name of the definition.
    pub definition: String,
}

impl fmt::Display for SchemaProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            key,
            path,
            message,
            definition,
        } = self;
        write!(f, "{place}: {key}: {path} {message} ({definition})")
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("custom resources do not fit the definitions that come with them; correct the manifest:")?;
        for problem in self.problems.iter().take(MAX_LISTED) {
            write!(f, "\n{problem}")?;
        }
        match self.problems.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for SchemaError {}

impl CrdSchemas {
    /// Collects the schemas of all definitions among `manifests` (those of all add-ons of a command) that apply to one of the manifests.
    pub fn from_manifests<'a>(manifests: impl Iterator<Item = &'a Manifest> + Clone) -> Self {
        let wanted: BTreeSet<Gvk> = manifests
            .clone()
            .filter_map(|manifest| Gvk::of(&manifest.object))
            .collect();
        let mut schemas = BTreeMap::new();
        for manifest in manifests {
            let Some((group, kind)) = defined_kind(&manifest.object) else {
                continue;
            };
            for version in definition_versions(&manifest.object) {
                let name = version.get("name").and_then(Value::as_str);
                let gvk = Gvk {
                    group: group.clone(),
                    version: name.unwrap_or_default().to_owned(),
                    kind: kind.clone(),
                };
                let root = version.pointer("/schema/openAPIV3Schema");
                let Some(root) = root.filter(|_| wanted.contains(&gvk)) else {
                    continue;
                };
                let definition = manifest.object.pointer("/metadata/name");
                let schema = CrdSchema {
                    definition: definition
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned(),
                    has_rules: check::has_rules(root),
                    root: root.clone(),
                };
                schemas.insert(gvk, schema);
            }
        }
        Self { schemas }
    }

    /// Checks all objects whose kind the command defines. Returns warnings: fields that the API server will drop, and patterns and rules
    /// that are not checked here.
    ///
    /// # Errors
    /// [`SchemaError`], with all problems.
    pub fn check(&self, manifests: &[Manifest]) -> Result<Vec<String>, SchemaError> {
        let mut problems = Vec::new();
        let mut warnings = BTreeSet::new();
        for manifest in manifests {
            let object = &manifest.object;
            let (Some(gvk), Some(key)) = (Gvk::of(object), ObjectKey::from_object(object)) else {
                continue;
            };
            let Some(schema) = self.schemas.get(&gvk) else {
                continue;
            };
            if schema.has_rules {
                warnings.insert(format!(
                    "the CEL rules of {} are judged when its objects are applied",
                    schema.definition
                ));
            }
            let place = &manifest.place;
            for finding in SchemaChecker::check_root(&schema.root, object) {
                match finding {
                    SchemaFinding::Problem { path, message } => problems.push(SchemaProblem {
                        place: place.clone(),
                        key: key.clone(),
                        path,
                        message,
                        definition: schema.definition.clone(),
                    }),
                    SchemaFinding::Unknown { path, near } => {
                        let meant = did_you_mean(near.as_deref());
                        warnings.insert(format!(
                            "{place}: {key}: {path} is unknown and will be dropped{meant}"
                        ));
                    }
                    SchemaFinding::Note(note) => {
                        warnings.insert(format!("{place}: {key}: {note}"));
                    }
                }
            }
        }
        if problems.is_empty() {
            return Ok(warnings.into_iter().collect());
        }
        problems.sort();
        Err(SchemaError { problems })
    }
}

/// Returns why `fieldValidation=Strict` would refuse an object by an openAPIV3Schema, including unknown fields, as pairs of path and
/// message: `spec.a`, and `must be a string, not a list`.
#[must_use]
pub fn find_strict_problems(schema: &Value, object: &Value) -> Vec<(String, String)> {
    let findings = SchemaChecker::check_root(schema, object).into_iter();
    findings
        .filter_map(|finding| match finding {
            SchemaFinding::Problem { path, message } => Some((path, message)),
            SchemaFinding::Unknown { path, near } => {
                let message = format!("unknown field{}", did_you_mean(near.as_deref()));
                Some((path, message))
            }
            SchemaFinding::Note(_) => None,
        })
        .collect()
}

/// Iterates over the versions of a definition.
pub fn definition_versions(definition: &Value) -> impl Iterator<Item = &Value> {
    let versions = definition.pointer("/spec/versions");
    versions.and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests;
