//! Custom resources whose definition is part of the same command, judged by its schema: the API server cannot judge them,
//! because it does not serve their kind yet, and an invalid one would fail in the middle of the operation.
//!
//! Judged is the content of a structural schema (apiextensions.k8s.io/v1): types, required and
//! unknown fields, enums, bounds, lengths, patterns, list keys, and the same inside `allOf`, `anyOf`, `oneOf` and `not`.
//! Defaults are applied, and a null where none is allowed counts as missing: the API server does the same before it judges.
//! CEL rules (`x-kubernetes-validations`) and formats are left to the API server; a definition with CEL rules is reported
//! once.
//!
//! The crate `jsonschema` is not used: it has 63 dependencies, and JSON Schema has no pruning, no
//! int-or-string, no nullable, no embedded resource, and its patterns are not Go's. `regex-lite` is one crate without
//! dependencies, linear in time, and its `\d`, `\w` and `\s` are ASCII as Go's are.

pub mod check;
pub mod mistakes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::manifest::key::{Gvk, ObjectKey};
use crate::manifest::kinds::traits::defined_kind;
use crate::manifest::{Manifest, Place};
use check::{Check, Finding};

/// How many problems are listed.
const TOLD: usize = 50;

/// The schemas of the definitions of a command, for the kinds that the same command has objects of.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    schemas: BTreeMap<Gvk, Schema>,
}

/// The schema of one version of a definition.
#[derive(Clone, Debug)]
struct Schema {
    /// Name of the definition.
    definition: String,
    /// openAPIV3Schema.
    root: Value,
    /// Whether it has CEL rules.
    has_rules: bool,
}

/// Every reason why custom resources do not fit the schema of their definition, sorted by place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The reasons; one at least.
    pub problems: Vec<SchemaProblem>,
}

/// Why one custom resource does not fit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaProblem {
    /// Where the object stands.
    pub place: Place,
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
        for problem in self.problems.iter().take(TOLD) {
            write!(f, "\n{problem}")?;
        }
        match self.problems.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for SchemaError {}

impl Schemas {
    /// The schemas of all definitions among `manifests` (those of every add-on of a command) that one of them is judged by.
    pub fn of<'a>(manifests: impl Iterator<Item = &'a Manifest> + Clone) -> Self {
        let wanted: BTreeSet<Gvk> = manifests
            .clone()
            .filter_map(|manifest| Gvk::of(&manifest.object))
            .collect();
        let mut schemas = BTreeMap::new();
        for manifest in manifests {
            let Some((group, kind)) = defined_kind(&manifest.object) else {
                continue;
            };
            for version in versions(&manifest.object) {
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
                let schema = Schema {
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

    /// Judges every object whose kind is defined by the command. Returns warnings: fields that the API
    /// server will drop, patterns and rules that were not judged here.
    ///
    /// # Errors
    /// [`SchemaError`], with every problem.
    pub fn check(&self, manifests: &[Manifest]) -> Result<Vec<String>, SchemaError> {
        let mut problems = Vec::new();
        let mut warnings = BTreeSet::new();
        for manifest in manifests {
            let object = &manifest.object;
            let (Some(gvk), Some(key)) = (Gvk::of(object), ObjectKey::of(object)) else {
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
            for finding in Check::root(&schema.root, object) {
                match finding {
                    Finding::Problem { path, message } => problems.push(SchemaProblem {
                        place: place.clone(),
                        key: key.clone(),
                        path,
                        message,
                        definition: schema.definition.clone(),
                    }),
                    Finding::Unknown { path, near } => {
                        let meant = meant(near.as_deref());
                        warnings.insert(format!(
                            "{place}: {key}: {path} is unknown and will be dropped{meant}"
                        ));
                    }
                    Finding::Note(note) => {
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

/// Why the API server would refuse an object by an openAPIV3Schema: `spec.a`, and `must be a string, not a list`.
#[must_use]
pub fn problems(schema: &Value, object: &Value) -> Vec<(String, String)> {
    let findings = Check::root(schema, object).into_iter();
    findings
        .filter_map(|finding| match finding {
            Finding::Problem { path, message } => Some((path, message)),
            Finding::Unknown { .. } | Finding::Note(_) => None,
        })
        .collect()
}

/// What `fieldValidation=Strict` refuses by an openAPIV3Schema, unknown fields as well: paths, and what is wrong there.
#[must_use]
pub fn strict(schema: &Value, object: &Value) -> Vec<(String, String)> {
    let findings = Check::root(schema, object).into_iter();
    findings
        .filter_map(|finding| match finding {
            Finding::Problem { path, message } => Some((path, message)),
            Finding::Unknown { path, near } => {
                let message = format!("unknown field{}", meant(near.as_deref()));
                Some((path, message))
            }
            Finding::Note(_) => None,
        })
        .collect()
}

/// The field that an unknown one may have been meant as.
fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean {near}?"))
}

/// The versions of a definition.
pub fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    let versions = definition.pointer("/spec/versions");
    versions.and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests;
