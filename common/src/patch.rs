//! Patches of rendered objects (semantics 12.23): JSON 6902 and strategic merge patches, with the targets of kustomize.
//!
//! Patches are applied in their order, each to all objects that it selects at that time. A patch that selects none is an error. An
//! object stays the same one: a patch changes neither its kind nor its name, but may delete it (`$patch: delete`).
//!
//! | bound | of what |
//! |---|---|
//! | [`MAX_PATCHES`] | the patches of an installation |
//! | [`MAX_BYTES`] | bytes of all of them |
//! | [`MAX_READ`] | bytes of one patch as JSON |
//! | [`MAX_COPIED`] | bytes that the `copy` operations of one patch add to one object |

mod error;
pub mod lists;
mod operations;
mod read;
mod strategic;
mod target;

use std::sync::Arc;

use json_patch::PatchOperation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::installation::ObjectPatch;
use crate::entrance::MAX_DEPTH;
use crate::manifest::Manifest;
use crate::manifest::key::{Gvk, ObjectKey};
use crate::manifest::yaml::{YamlOptions, documents};
use crate::nearest::nearest;
use target::PatchScope;

pub use error::{OperationProblem, PatchError, PatchProblem};
pub use read::{PatchFileError, read_patches};

/// The maximum number of patches of an installation.
pub const MAX_PATCHES: usize = 64;
/// The maximum size of all patches of an installation, in bytes.
pub const MAX_BYTES: usize = 64 << 10;
/// The maximum size of one patch as JSON, in bytes. Aliases could make it much larger than its text.
pub const MAX_READ: usize = 256 << 10;
/// The maximum number of bytes that the `copy` operations of one patch add to one object. A few lines could otherwise fill any memory.
pub const MAX_COPIED: usize = 1 << 20;
/// The maximum number of similar objects that an error names.
const MAX_NEAREST: usize = 3;

/// Patches that can be applied.
#[derive(Debug, Default)]
pub struct Patches {
    patches: Vec<CompiledPatch>,
}

#[derive(Debug)]
struct CompiledPatch {
    target: PatchScope,
    change: Change,
}

#[derive(Debug)]
enum Change {
    /// JSON 6902.
    Operations(Vec<PatchOperation>),
    /// A strategic merge patch, without the fields that name the object.
    Merge(Map<String, Value>),
}

/// An object that a patch was applied to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchedObject {
    /// The index of the patch in `spec.patches`.
    pub patch: usize,
    /// The object, as its manifest names it.
    pub object: ObjectKey,
    /// The fields that the patch changed: `spec.template.spec.tolerations`. Empty if it deleted the object.
    pub fields: Vec<String>,
    /// Whether the patch deleted it.
    pub deleted: bool,
}

impl PatchedObject {
    /// Warns about content of a Secret that the patch sets, because the patch is in the installation.
    #[must_use]
    pub fn warn_secret(&self) -> Option<String> {
        let is_content = |field: &String| {
            let mut content = ["data", "stringData"].into_iter();
            content.any(|name| {
                let rest = field.strip_prefix(name);
                rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            })
        };
        let shows = self.object.is_secret() && self.fields.iter().any(is_content);
        shows.then(|| {
            format!(
                "spec.patches[{}] sets content of {}: everyone who may read the installation can read it; set it by values from a Secret \
                 (spec.valuesFrom)",
                self.patch, self.object
            )
        })
    }
}

impl Patches {
    /// Refuses patches of an add-on that helm itself installs.
    ///
    /// # Errors
    /// There are patches.
    pub fn check_release(patches: &[ObjectPatch]) -> Result<(), PatchError> {
        match patches.is_empty() {
            true => Ok(()),
            false => Err(of_all(PatchProblem::OfRelease)),
        }
    }

    /// Compiles the patches of an installation.
    ///
    /// # Errors
    /// A patch is not valid, or a limit is exceeded.
    pub fn compile(patches: &[ObjectPatch]) -> Result<Self, PatchError> {
        let (count, most) = (patches.len(), MAX_PATCHES);
        if count > most {
            return Err(of_all(PatchProblem::TooMany { count, most }));
        }
        let (bytes, most) = (patches.iter().map(|one| one.patch.len()).sum(), MAX_BYTES);
        if bytes > most {
            return Err(of_all(PatchProblem::TooLong { bytes, most }));
        }
        let patches = patches.iter().enumerate().map(|(index, patch)| {
            compile_one(patch).map_err(|(field, problem)| PatchError {
                field: format!("spec.patches[{index}].{field}"),
                object: None,
                problem,
            })
        });
        Ok(Self {
            patches: patches.collect::<Result<_, _>>()?,
        })
    }

    /// Applies the patches to the objects of an installation. Those that name no namespace count as in `namespace`. Returns what
    /// each patch changed.
    ///
    /// # Errors
    /// A patch matches no object, or cannot be applied to one.
    pub fn apply(
        &self,
        manifests: &mut Vec<Manifest>,
        namespace: &str,
    ) -> Result<Vec<PatchedObject>, PatchError> {
        let mut patched = Vec::new();
        for (index, patch) in self.patches.iter().enumerate() {
            let known = patched.len();
            let mut kept = Vec::with_capacity(manifests.len());
            for mut manifest in std::mem::take(manifests) {
                if patch.target.matches(&manifest.object, namespace) {
                    let object = ObjectKey::from_object(&manifest.object).unwrap_or_default();
                    let mut changed = Value::clone(&manifest.object);
                    let stays = patch
                        .change
                        .apply(&mut changed)
                        .map_err(|problem| PatchError {
                            field: format!("spec.patches[{index}]"),
                            object: Some(Box::new(object.clone())),
                            problem,
                        })?;
                    let fields = match stays {
                        true => changed_fields(&manifest.object, &changed),
                        false => Vec::new(),
                    };
                    patched.push(PatchedObject {
                        patch: index,
                        object,
                        fields,
                        deleted: !stays,
                    });
                    if !stays {
                        continue;
                    }
                    manifest.object = Arc::new(changed);
                }
                kept.push(manifest);
            }
            *manifests = kept;
            if patched.len() == known {
                return Err(PatchError {
                    field: format!("spec.patches[{index}].{}", patch.target.field()),
                    object: None,
                    problem: PatchProblem::NoMatch {
                        wanted: patch.target.describe(),
                        nearest: find_nearest(&patch.target, manifests),
                    },
                });
            }
        }
        Ok(patched)
    }
}

/// Returns an error about all patches.
fn of_all(problem: PatchProblem) -> PatchError {
    PatchError {
        field: "spec.patches".to_owned(),
        object: None,
        problem,
    }
}

impl Change {
    /// Applies the change to an object. Returns whether the object stays.
    fn apply(&self, object: &mut Value) -> Result<bool, PatchProblem> {
        let before = Identity::of(object);
        match self {
            Self::Operations(operations) => {
                operations::apply(operations, object)?;
                before.check(object)?;
            }
            Self::Merge(patch) => {
                let kind = Gvk::of(object).unwrap_or_default();
                if !strategic::merge(object, patch, &kind)? {
                    return Ok(false);
                }
                before.restore(object);
            }
        }
        match depth(object) > MAX_DEPTH {
            true => Err(PatchProblem::TooDeep { most: MAX_DEPTH }),
            false => Ok(true),
        }
    }
}

/// The paths of the fields that say which object it is.
const IDENTITY: [(&str, &[&str]); 4] = [
    ("apiVersion", &["apiVersion"]),
    ("kind", &["kind"]),
    ("metadata.name", &["metadata", "name"]),
    ("metadata.namespace", &["metadata", "namespace"]),
];

/// The fields that say which object it is.
struct Identity(Vec<Option<Value>>);

impl Identity {
    fn of(object: &Value) -> Self {
        let fields = IDENTITY.iter();
        Self(
            fields
                .map(|(_, path)| find(object, path).cloned())
                .collect(),
        )
    }

    /// Refuses an object that has become another one.
    fn check(&self, object: &Value) -> Result<(), PatchProblem> {
        let mut fields = IDENTITY.iter().zip(&self.0);
        match fields.find(|((_, path), before)| find(object, path) != before.as_ref()) {
            Some(((field, _), _)) => Err(PatchProblem::Identity { field }),
            None => Ok(()),
        }
    }

    /// Writes the fields back: in a merge patch they only say which object is meant.
    fn restore(self, object: &mut Value) {
        for ((_, path), before) in IDENTITY.iter().zip(self.0) {
            let (Some((last, parents)), Some(before)) = (path.split_last(), before) else {
                continue;
            };
            let mut at = &mut *object;
            for parent in parents {
                let slot = at
                    .as_object_mut()
                    .map(|map| map.entry(*parent).or_insert(Value::Null));
                let Some(slot) = slot else { return };
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                at = slot;
            }
            if let Some(map) = at.as_object_mut() {
                map.insert((*last).to_owned(), before);
            }
        }
    }
}

fn find<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |at, field| at.get(field))
}

/// Compiles a patch. An error has the field of the patch.
fn compile_one(written: &ObjectPatch) -> Result<CompiledPatch, (String, PatchProblem)> {
    let in_patch = |problem| ("patch".to_owned(), problem);
    let target = written.target.as_ref().map(PatchScope::compile).transpose();
    let target = target.map_err(|(field, problem)| (format!("target.{field}"), problem))?;
    match read_document(&written.patch).map_err(in_patch)? {
        Value::Array(list) => {
            let operations = operations::parse(list).map_err(in_patch)?;
            let target = target.ok_or_else(|| in_patch(PatchProblem::NoTarget))?;
            Ok(CompiledPatch {
                target,
                change: Change::Operations(operations),
            })
        }
        Value::Object(mut patch) => {
            let target = target.or_else(|| PatchScope::named(&patch));
            let target = target.ok_or_else(|| in_patch(PatchProblem::Unnamed))?;
            patch.remove("apiVersion");
            patch.remove("kind");
            if let Some(Value::Object(metadata)) = patch.get_mut("metadata") {
                metadata.remove("name");
                metadata.remove("namespace");
            }
            Ok(CompiledPatch {
                target,
                change: Change::Merge(patch),
            })
        }
        _ => Err(in_patch(PatchProblem::NotAPatch)),
    }
}

/// Reads the text of a patch.
fn read_document(text: &str) -> Result<Value, PatchProblem> {
    let mut read = Vec::new();
    for document in documents(text.as_bytes(), &YamlOptions::default()) {
        let document = document.map_err(|error| PatchProblem::Yaml {
            line: error.line,
            column: error.column,
            problem: error.problem,
        })?;
        if !document.value.is_null() {
            read.push(document.value);
        }
    }
    match (read.pop(), read.is_empty()) {
        (Some(only), true) => match (only.to_string().len(), MAX_READ) {
            (bytes, most) if bytes > most => Err(PatchProblem::TooLong { bytes, most }),
            _ => Ok(only),
        },
        _ => Err(PatchProblem::NotAPatch),
    }
}

/// Returns the objects that a target may have meant: of its kind, with the most similar names.
fn find_nearest(target: &PatchScope, manifests: &[Manifest]) -> Vec<String> {
    let (kind, name) = target.wanted();
    let keys = manifests.iter();
    let keys: Vec<ObjectKey> = keys
        .filter_map(|it| ObjectKey::from_object(&it.object))
        .collect();
    let kinds = keys.iter().map(|key| key.kind.as_str());
    let kind = kind.and_then(|kind| nearest(kind, kinds));
    let same_kind = |key: &&ObjectKey| kind.is_none_or(|kind| key.kind == kind);
    let mut left: Vec<&ObjectKey> = keys.iter().filter(same_kind).collect();
    if left.is_empty() {
        left = keys.iter().collect();
    }
    let mut found = Vec::new();
    // Similar names first, then the others in their order.
    while found.len() < MAX_NEAREST && !left.is_empty() {
        let names = left.iter().map(|key| key.name.as_str());
        let near = name.and_then(|name| nearest(name, names));
        let at = near.and_then(|near| left.iter().position(|key| key.name == near));
        found.push(left.remove(at.unwrap_or_default()).to_string());
    }
    found
}

/// Returns the paths at which two objects differ. Lists of different lengths are one path.
fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_changes(before, after, "", &mut found);
    found
}

fn collect_changes(before: &Value, after: &Value, path: &str, found: &mut Vec<String>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            let mut names: Vec<&String> = old.keys().chain(added).collect();
            names.sort();
            for name in names {
                let of = |map: &Map<String, Value>| map.get(name).cloned().unwrap_or_default();
                collect_changes(&of(old), &of(new), &join(path, name), found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                collect_changes(old, new, &format!("{path}[{index}]"), found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

/// Adds a field to a path. A name with a dot, such as that of an annotation, is in brackets.
fn join(path: &str, name: &str) -> String {
    match path {
        _ if name.contains(['.', '/']) => format!("{path}[{name}]"),
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// Returns the levels of lists and maps. The operations of a patch can nest a value deeper than its text, by one level each.
fn depth(value: &Value) -> usize {
    let mut levels = 0;
    let mut next = vec![value];
    while !next.is_empty() {
        let below = next.into_iter().flat_map(|value| match value {
            Value::Array(items) => items.iter().collect::<Vec<_>>(),
            Value::Object(map) => map.values().collect(),
            _ => Vec::new(),
        });
        next = below.collect();
        levels += 1;
    }
    levels - 1
}

#[cfg(test)]
mod tests;
