//! Fills in defaults, and records which values were filled in (semantics 10.1).
//!
//! The record contains a digest of every leaf that was filled in. As long as the leaf has this digest, it follows the catalogue; once it
//! was edited, it is the user's.

use std::collections::BTreeMap;

use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Map, Number, Value};

use super::form;
use super::merge::{Layer, merge};
use super::path::unescape_key;
use crate::api::catalogue::AddonVersion;
use crate::api::names::hex_prefix;
use crate::entrance;

/// Size limit of a record in bytes. Annotations of an object may have 256 KiB together. A larger record is not written; rendering merges
/// the defaults anyway.
const MAX_RECORD: usize = 128 << 10;
/// Maximum depth of values. The API server refuses deeper ones.
const MAX_DEPTH: usize = 100;

/// The leaves of `spec.values` that were filled in: digests by JSON pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultsRecord(BTreeMap<String, String>);

/// Values with the record of what was filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct FilledValues {
    /// The new `spec.values`.
    pub values: Map<String, Value>,
    /// The new record.
    pub record: DefaultsRecord,
}

impl DefaultsRecord {
    /// Reads the annotation. An unreadable record counts as empty, so that all values are the user's.
    #[must_use]
    pub fn parse(annotation: Option<&str>) -> Self {
        annotation
            .and_then(|text| entrance::from_str(text).ok())
            .map(Self)
            .unwrap_or_default()
    }

    /// Returns the text of the annotation, or `None` if the record is empty.
    #[must_use]
    pub fn to_annotation(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        serde_json::to_string(&self.0).ok()
    }

    /// Iterates over the top-level keys of the values in which something was filled in.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        let first = |pointer: &String| Some(unescape_key(pointer.split('/').nth(1)?));
        self.0.keys().filter_map(first)
    }

    /// Returns whether `value` at `pointer` is what was filled in.
    fn holds(&self, pointer: &Pointer, value: &Value) -> bool {
        self.0
            .get(pointer.as_str())
            .is_some_and(|recorded| *recorded == digest(value))
    }
}

/// Returns the defaults of an entry: its values, overridden by the form's defaults.
#[must_use]
pub fn defaults(version: &AddonVersion) -> Map<String, Value> {
    let values = version.values.as_ref().unwrap_or(&Value::Null);
    let form = form::defaults(&version.template.form_spec);
    match merge(&[(Layer::Catalogue, values), (Layer::Form, &form)]) {
        Value::Object(defaults) => defaults,
        _ => Map::new(),
    }
}

/// Returns the user's own values: those without unchanged defaults.
///
/// The layer between, `valuesFrom`, is merged over the defaults and under the user's values (semantics 9).
#[must_use]
pub fn user_values(current: &Map<String, Value>, record: &DefaultsRecord) -> Map<String, Value> {
    let mut own = current.clone();
    remove_recorded(&mut own, record, &mut PointerBuf::root(), 0);
    own
}

/// Fills `defaults` into the user's own values. Returns `None` if they are nested too deeply, or if the record would be too long.
#[must_use]
pub fn fill_defaults(
    current: &Map<String, Value>,
    record: &DefaultsRecord,
    defaults: Map<String, Value>,
) -> Option<FilledValues> {
    let mut values = user_values(current, record);
    let mut new = DefaultsRecord::default();
    let mut pointer = PointerBuf::root();
    add_missing(&mut values, defaults, &mut pointer, &mut new, 0)?;
    if new
        .to_annotation()
        .is_some_and(|text| text.len() > MAX_RECORD)
    {
        return None;
    }
    Some(FilledValues {
        values,
        record: new,
    })
}

/// Removes the leaves that still have their recorded value, and the objects that become empty. This includes an object that the user wrote
/// as `{}` before it was filled; merging gives the same result.
fn remove_recorded(
    values: &mut Map<String, Value>,
    record: &DefaultsRecord,
    pointer: &mut PointerBuf,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    values.retain(|key, value| {
        pointer.push_back(key);
        let keep = match value {
            Value::Object(inner) if !inner.is_empty() => {
                remove_recorded(inner, record, pointer, depth + 1);
                !inner.is_empty()
            }
            leaf => !record.holds(pointer, leaf),
        };
        pointer.pop_back();
        keep
    });
}

/// Adds missing values, and records all leaves of them.
fn add_missing(
    values: &mut Map<String, Value>,
    defaults: Map<String, Value>,
    pointer: &mut PointerBuf,
    record: &mut DefaultsRecord,
    depth: usize,
) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    for (key, default) in defaults {
        pointer.push_back(&key);
        match (values.get_mut(&key), default) {
            (Some(Value::Object(inner)), Value::Object(default)) => {
                add_missing(inner, default, pointer, record, depth + 1)?;
            }
            // The user's own value. A null, which deletes, is one as well.
            (Some(_), _) => {}
            (None, Value::Object(default)) if !default.is_empty() => {
                let mut inner = Map::new();
                add_missing(&mut inner, default, pointer, record, depth + 1)?;
                values.insert(key, Value::Object(inner));
            }
            (None, default) => {
                let default = to_stored(default);
                record
                    .0
                    .insert(pointer.as_str().to_owned(), digest(&default));
                values.insert(key, default);
            }
        }
        pointer.pop_back();
    }
    Some(())
}

/// Appends the operations that turn `old` into `new`. They are as few and as deep as possible; lists are replaced as a whole.
pub fn append_difference(
    path: &Pointer,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    operations: &mut Vec<PatchOperation>,
) {
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        let path = path.with_trailing_token(key);
        operations.push(PatchOperation::Remove(RemoveOperation { path }));
    }
    for (key, value) in new {
        let path = path.with_trailing_token(key);
        match (old.get(key), value) {
            (Some(old), new) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new)) => {
                append_difference(&path, old, new, operations);
            }
            (Some(_), new) => operations.push(PatchOperation::Replace(ReplaceOperation {
                path,
                value: new.clone(),
            })),
            (None, new) => operations.push(PatchOperation::Add(AddOperation {
                path,
                value: new.clone(),
            })),
        }
    }
}

/// Returns the first 16 hex digits of the sha256 of a value as the API server would store it.
fn digest(value: &Value) -> String {
    hex_prefix(to_stored(value.clone()).to_string().as_bytes(), 16)
}

/// Converts a value to what the API server returns: 1.0 becomes 1. serde_json keeps keys sorted.
fn to_stored(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(integral(&number).unwrap_or(number)),
        Value::Array(items) => Value::Array(items.into_iter().map(to_stored).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| (key, to_stored(value)))
                .collect(),
        ),
        other => other,
    }
}

/// Returns the integer that a float is equal to, if it is exact.
fn integral(number: &Number) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|_| number.is_f64())?;
    if float.fract() != 0.0 || float.abs() >= EXACT {
        return None;
    }
    format!("{float:.0}").parse::<i64>().ok().map(Number::from)
}

#[cfg(test)]
mod tests;
