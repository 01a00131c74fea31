//! Keys of a map, including repeated keys and merge keys.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::error::{YamlError, YamlProblem};

/// A map that is being read.
#[derive(Default)]
pub(super) struct OpenMap<'t> {
    pub(super) map: Map<String, Value>,
    /// The key whose value comes next.
    pub(super) key: Option<MapKey<'t>>,
    /// The explicit keys in order. Only filled if duplicates are errors.
    keys: Vec<(Cow<'t, str>, YamlPosition)>,
    /// Keys that a merge key added and that were not overridden.
    merged: BTreeSet<String>,
}

/// A key as it was read.
pub(super) enum MapKey<'t> {
    Text(Cow<'t, str>, YamlPosition),
    Merge(YamlPosition),
}

/// A position in the stream, from 1.
#[derive(Clone, Copy)]
pub(super) struct YamlPosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl<'t> OpenMap<'t> {
    /// Sets an explicit key.
    pub(super) fn insert(
        &mut self,
        key: Cow<'t, str>,
        position: YamlPosition,
        value: Value,
        strict: bool,
    ) -> Result<(), YamlError> {
        if !strict {
            self.map.insert(key.into_owned(), value);
            return Ok(());
        }
        let repeated = self.map.insert(key.clone().into_owned(), value).is_some();
        // A key after a merge key overrides the merged value; that is what merge keys are for.
        if repeated && !self.merged.remove(key.as_ref()) {
            let first = self.first_position(&key);
            let problem = YamlProblem::DuplicateKey {
                key: key.into_owned(),
                first_line: first.line,
                first_column: first.column,
            };
            return Err(YamlError::new(position.line, position.column, problem));
        }
        self.keys.push((key, position));
        Ok(())
    }

    /// Merges as go-yaml does: merged keys replace keys before `<<`; in a list of maps, the first map wins.
    pub(super) fn merge(
        &mut self,
        value: Value,
        position: YamlPosition,
        strict: bool,
    ) -> Result<(), YamlError> {
        let error = |problem| Err(YamlError::new(position.line, position.column, problem));
        let items = match value {
            Value::Array(items) => items,
            value => vec![value],
        };
        let mut maps = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::Object(map) => maps.push(map),
                _ => return error(YamlProblem::Merge),
            }
        }
        for (key, value) in maps.into_iter().rev().flatten() {
            let repeated = self.map.insert(key.clone(), value).is_some();
            if repeated && strict && !self.merged.contains(&key) {
                let first = self.first_position(&key);
                let problem = YamlProblem::MergeReplaces {
                    key,
                    first_line: first.line,
                    first_column: first.column,
                };
                return error(problem);
            }
            self.merged.insert(key);
        }
        Ok(())
    }

    /// Returns the position of the first occurrence of a key. Only needed for errors.
    fn first_position(&self, key: &str) -> YamlPosition {
        self.keys
            .iter()
            .find(|(known, _)| known == key)
            .map_or(YamlPosition { line: 0, column: 0 }, |(_, position)| {
                *position
            })
    }
}
