//! Parses bytes to the objects of a manifest. Lists are expanded; a value that is not an object is an error with its position.

mod error;
mod metadata;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::key::ObjectKey;
use super::yaml::{DuplicateKeys, YamlDocument, YamlError, YamlOptions, documents};
use super::{FilePosition, Manifest};

pub use error::ManifestError;

/// Options and limits of parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestOptions {
    /// Maximum size of one file, in bytes.
    pub bytes: usize,
    /// Maximum number of objects in all files. The size of an inventory limits it (semantics 13.4).
    pub objects: usize,
    /// How a repeated key is handled. If it is not an error, it is a warning: the API server's own clients take the last one, and existing
    /// manifests depend on that.
    pub duplicate_keys: DuplicateKeys,
    /// Labels whose bare `true` counts as the text "true", with a warning. In any other label, it is an error.
    pub bare_labels: &'static [&'static str],
}

impl Default for ManifestOptions {
    fn default() -> Self {
        Self {
            bytes: 16 << 20,
            objects: 5_000,
            duplicate_keys: DuplicateKeys::LastWins,
            bare_labels: &[],
        }
    }
}

/// A file with manifests.
#[derive(Clone, Copy, Debug)]
pub struct ManifestFile<'a> {
    /// The file name in positions.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// The objects of a manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedManifests {
    /// The objects in the order of the files, without duplicate keys.
    pub manifests: Vec<Manifest>,
    /// Warnings about omitted documents and objects, with positions.
    pub warnings: Vec<String>,
}

/// Reads the objects of one file; see [`parse_files`].
///
/// # Errors
/// [`ManifestError`], with its position.
pub fn parse(
    bytes: &[u8],
    name: &str,
    options: &ManifestOptions,
) -> Result<ParsedManifests, ManifestError> {
    parse_files([ManifestFile { name, bytes }], options)
}

/// Reads the objects of the files of one add-on.
///
/// - Empty documents are skipped. `List` and `…List` objects are replaced by their items. As in kubectl, items without `apiVersion` and
///   `kind` take them from the list.
/// - A Kustomization is not a cluster object. It is skipped with a warning.
/// - An object that is repeated word for word is dropped with a warning. A different one with the same key is an error, even in another
///   file. (kubectl and kops apply one after the other, so that the last one silently wins.)
/// - An empty `metadata.namespace` counts as missing.
///
/// # Errors
/// [`ManifestError`], with its position.
pub fn parse_files<'a>(
    files: impl IntoIterator<Item = ManifestFile<'a>>,
    options: &ManifestOptions,
) -> Result<ParsedManifests, ManifestError> {
    let (parsed, errors) = parse_all(files, options);
    match errors.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(parsed),
    }
}

/// Like [`parse_files`], but returns all errors, one per document. If there are too many objects, the rest of the file is skipped.
pub fn parse_all<'a>(
    files: impl IntoIterator<Item = ManifestFile<'a>>,
    options: &ManifestOptions,
) -> (ParsedManifests, Vec<ManifestError>) {
    let (mut parsed, mut errors) = (ParsedManifests::default(), Vec::new());
    let mut keys = HashMap::new();
    for file in files {
        if file.bytes.len() > options.bytes {
            errors.push(ManifestError::TooLong {
                file: file.name.to_owned(),
                bytes: file.bytes.len(),
                limit: options.bytes,
            });
            continue;
        }
        let mut reader = ManifestReader {
            file: file.name,
            limit: options.objects,
            bare_labels: options.bare_labels,
            parsed: &mut parsed,
            keys: &mut keys,
        };
        for document in reader.documents(file.bytes, options.duplicate_keys) {
            let Err(error) = reader.read_document(document) else {
                continue;
            };
            let is_last = matches!(error, ManifestError::TooMany { .. });
            errors.push(error);
            if is_last {
                break;
            }
        }
    }
    (parsed, errors)
}

struct ManifestReader<'a> {
    file: &'a str,
    limit: usize,
    bare_labels: &'static [&'static str],
    parsed: &'a mut ParsedManifests,
    /// Index in `parsed.manifests` by key.
    keys: &'a mut HashMap<ObjectKey, usize>,
}

impl ManifestReader<'_> {
    /// Reads strictly, to find repeated keys. If there are any and the last one counts, reads once more.
    fn documents(
        &mut self,
        bytes: &[u8],
        duplicate_keys: DuplicateKeys,
    ) -> Vec<Result<YamlDocument, YamlError>> {
        let read: Vec<_> = documents(bytes, &YamlOptions::default()).collect();
        let errors: Vec<&YamlError> = read.iter().filter_map(|one| one.as_ref().err()).collect();
        // Report any other error first.
        let harmless = errors.iter().all(|error| error.is_tolerable());
        let repeated: Vec<String> = errors
            .into_iter()
            .filter(|_| harmless && duplicate_keys == DuplicateKeys::LastWins)
            .map(|error| {
                let place = self.place(error.line, error.column);
                format!("{place}: {}; the last one counts", error.problem)
            })
            .collect();
        if repeated.is_empty() {
            return read;
        }
        self.parsed.warnings.extend(repeated);
        let lenient = YamlOptions {
            duplicate_keys,
            ..YamlOptions::default()
        };
        documents(bytes, &lenient).collect()
    }

    fn read_document(
        &mut self,
        document: Result<YamlDocument, YamlError>,
    ) -> Result<(), ManifestError> {
        let document = document.map_err(|error| ManifestError::Yaml {
            place: self.place(error.line, error.column),
            problem: error.problem,
        })?;
        if document.value.is_null() {
            return Ok(());
        }
        let place = self.place(document.line, 0);
        self.read_object(document.value, place, &document.item_lines)
    }

    fn place(&self, line: usize, column: usize) -> FilePosition {
        FilePosition {
            file: self.file.to_owned(),
            line,
            column,
        }
    }

    fn read_object(
        &mut self,
        value: Value,
        place: FilePosition,
        item_lines: &[usize],
    ) -> Result<(), ManifestError> {
        let Value::Object(mut object) = value else {
            let found = type_of(&value);
            return Err(ManifestError::NotAnObject { place, found });
        };
        if is_kustomization(&object, self.file) {
            self.parsed.warnings.push(format!(
                "{place}: a Kustomization is not an object of a cluster and is left out: build it with kustomize first"
            ));
            return Ok(());
        }
        let api_version = text_field(&object, "apiVersion", &place)?.to_owned();
        let kind = text_field(&object, "kind", &place)?.to_owned();
        if is_list(&object, &kind) {
            let items = object.remove("items").unwrap_or_default();
            return self.read_items(items, &api_version, &kind, &place, item_lines);
        }
        let bare = metadata::convert_bare_labels(&mut object, self.bare_labels, &place);
        self.parsed.warnings.extend(bare);
        metadata::check_metadata(&mut object, &kind, &place)?;
        self.add_object(Value::Object(object), place)
    }

    fn read_items(
        &mut self,
        items: Value,
        api_version: &str,
        kind: &str,
        place: &FilePosition,
        lines: &[usize],
    ) -> Result<(), ManifestError> {
        let Value::Array(items) = items else {
            return Ok(());
        };
        let item_kind = kind.strip_suffix("List").unwrap_or_default();
        for (index, mut item) in items.into_iter().enumerate() {
            let line = lines.get(index).copied().unwrap_or(place.line);
            if let Value::Object(item) = &mut item
                && !item_kind.is_empty()
                && !item.contains_key("kind")
            {
                item.insert("kind".into(), item_kind.into());
                item.insert("apiVersion".into(), api_version.into());
            }
            self.read_object(item, self.place(line, 0), &[])?;
        }
        Ok(())
    }

    fn add_object(&mut self, object: Value, place: FilePosition) -> Result<(), ManifestError> {
        let Some(key) = ObjectKey::from_object(&object) else {
            let field = "metadata.name";
            return Err(ManifestError::Missing { place, field });
        };
        if let Some(first) = self
            .keys
            .get(&key)
            .and_then(|index| self.parsed.manifests.get(*index))
        {
            if *first.object == object {
                self.parsed.warnings.push(format!(
                    "{place}: {key} is the same as at {} and is left out",
                    first.place
                ));
                return Ok(());
            }
            return Err(ManifestError::Conflict {
                key: Box::new(key),
                first: first.place.clone(),
                second: place,
            });
        }
        if self.parsed.manifests.len() >= self.limit {
            let limit = self.limit;
            return Err(ManifestError::TooMany { place, limit });
        }
        self.keys.insert(key, self.parsed.manifests.len());
        let object = Arc::new(object);
        self.parsed.manifests.push(Manifest { object, place });
        Ok(())
    }
}

/// Returns whether an object is a Kustomization: it has the API group, or it has neither version nor kind and is in a file with kustomize's
/// name.
fn is_kustomization(object: &Map<String, Value>, file: &str) -> bool {
    match object.get("apiVersion").and_then(Value::as_str) {
        Some(api_version) => api_version.starts_with("kustomize.config.k8s.io/"),
        None => {
            let name = file.rsplit('/').next().unwrap_or_default();
            !object.contains_key("kind")
                && matches!(
                    name,
                    "kustomization.yaml" | "kustomization.yml" | "Kustomization"
                )
        }
    }
}

/// Returns whether an object is a list. kubectl treats every object with `items` as a list, but an object of a kind like `AllowList` has a
/// name.
fn is_list(object: &Map<String, Value>, kind: &str) -> bool {
    let has_name = object
        .get("metadata")
        .and_then(|metadata| metadata.get("name"))
        .is_some();
    let items = object.get("items");
    kind == "List" || (kind.ends_with("List") && items.is_some_and(Value::is_array) && !has_name)
}

/// Returns a text field, which must not be empty.
fn text_field<'a>(
    object: &'a Map<String, Value>,
    field: &'static str,
    place: &FilePosition,
) -> Result<&'a str, ManifestError> {
    match object.get(field) {
        None | Some(Value::Null) => Err(ManifestError::Missing {
            place: place.clone(),
            field,
        }),
        Some(Value::String(text)) if text.is_empty() => Err(ManifestError::Missing {
            place: place.clone(),
            field,
        }),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(wrong_type(place, field, other, "text")),
    }
}

fn wrong_type(
    place: &FilePosition,
    field: &str,
    found: &Value,
    expected: &'static str,
) -> ManifestError {
    ManifestError::WrongType {
        place: place.clone(),
        field: field.to_owned(),
        found: type_of(found),
        expected,
    }
}

/// Returns the type of a JSON value, for messages.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

#[cfg(test)]
mod tests;
