//! Values that were filled in by default, and which they are (semantics 10).
//!
//! The record marks every defaulted leaf with a digest of its value. While the digest is that of the
//! value, the leaf is ours and follows the catalogue; after an edit it is the user's.

use std::collections::BTreeMap;

use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Map, Number, Value};

use super::form;
use super::merge::{Layer, merge};
use super::path::unescaped;
use crate::api::catalogue::AddonVersion;
use crate::api::names::hex_prefix;
use crate::entrance;

/// Annotations of an object may have 256 KiB together; a larger record is not written, because rendering merges by itself.
const MAX_RECORD: usize = 128 << 10;
/// No object has deeper values: the API server refuses them.
const MAX_DEPTH: usize = 100;

/// Which leaves of `spec.values` were filled in: JSON pointer → digest of the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record(BTreeMap<String, String>);

/// Values with their record.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// The new `spec.values`.
    pub values: Map<String, Value>,
    /// The new record.
    pub record: Record,
}

impl Record {
    /// Reads the annotation. An unreadable record counts as empty: then everything is the user's.
    #[must_use]
    pub fn parse(annotation: Option<&str>) -> Self {
        annotation
            .and_then(|text| entrance::from_str(text).ok())
            .map(Self)
            .unwrap_or_default()
    }

    /// The annotation's text; `None` where nothing is recorded.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        serde_json::to_string(&self.0).ok()
    }

    /// The keys of the values in which something was filled in.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        let first = |pointer: &String| Some(unescaped(pointer.split('/').nth(1)?));
        self.0.keys().filter_map(first)
    }

    /// Whether `value` at `pointer` is what was filled in there.
    fn holds(&self, pointer: &Pointer, value: &Value) -> bool {
        self.0
            .get(pointer.as_str())
            .is_some_and(|recorded| *recorded == digest(value))
    }
}

/// The defaults of an entry: its values, over them the form's defaults.
#[must_use]
pub fn defaults(version: &AddonVersion) -> Map<String, Value> {
    let values = version.values.as_ref().unwrap_or(&Value::Null);
    let form = form::defaults(&version.template.form_spec);
    match merge(&[(Layer::Catalogue, values), (Layer::Form, &form)]) {
        Value::Object(defaults) => defaults,
        _ => Map::new(),
    }
}

/// The user's own values: without unchanged values that were filled in.
///
/// Layers between (`valuesFrom`) are merged over the defaults and under these (semantics 9).
#[must_use]
pub fn own(current: &Map<String, Value>, record: &Record) -> Map<String, Value> {
    let mut own = current.clone();
    remove_recorded(&mut own, record, &mut PointerBuf::root(), 0);
    own
}

/// Fills `defaults` into the user's own values. `None` where they are too deep, or the record would be too long.
#[must_use]
pub fn fill(
    current: &Map<String, Value>,
    record: &Record,
    defaults: Map<String, Value>,
) -> Option<Filled> {
    let mut values = own(current, record);
    let mut new = Record::default();
    let mut pointer = PointerBuf::root();
    add_missing(&mut values, defaults, &mut pointer, &mut new, 0)?;
    if new.text().is_some_and(|text| text.len() > MAX_RECORD) {
        return None;
    }
    Some(Filled {
        values,
        record: new,
    })
}

/// Removes the leaves that are recorded with their value, and the objects that are empty without them (also one that
/// the user wrote as `{}` before it was filled: merged, both are the same).
fn remove_recorded(
    values: &mut Map<String, Value>,
    record: &Record,
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

/// Adds what is missing, and records every leaf of it.
fn add_missing(
    values: &mut Map<String, Value>,
    defaults: Map<String, Value>,
    pointer: &mut PointerBuf,
    record: &mut Record,
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
            // The user's own value; also null, which deletes.
            (Some(_), _) => {}
            (None, Value::Object(default)) if !default.is_empty() => {
                let mut inner = Map::new();
                add_missing(&mut inner, default, pointer, record, depth + 1)?;
                values.insert(key, Value::Object(inner));
            }
            (None, default) => {
                let default = as_stored(default);
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

/// The operations that turn `old` into `new`: as few and as deep as possible, lists as a whole.
pub fn difference(
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
                difference(&path, old, new, operations);
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

/// First 16 hex digits of the sha256 of a value as the API server would store it.
fn digest(value: &Value) -> String {
    hex_prefix(as_stored(value.clone()).to_string().as_bytes(), 16)
}

/// A value as the API server returns it: 1.0 is 1 there. serde_json keeps keys sorted.
fn as_stored(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(integral(&number).unwrap_or(number)),
        Value::Array(items) => Value::Array(items.into_iter().map(as_stored).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| (key, as_stored(value)))
                .collect(),
        ),
        other => other,
    }
}

/// The integer that a float is, where it can be written exactly.
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
