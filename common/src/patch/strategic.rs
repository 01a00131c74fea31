//! Strategic merge patches: maps are merged, null deletes, and lists are merged as [`lists`] says. The directives are those of
//! Kubernetes. As in kustomize, the items of a patch come first in a list, in their order.

use serde_json::{Map, Value};

use super::error::PatchProblem;
use super::lists::{self, ListMerge};
use crate::manifest::key::Gvk;

/// What happens to the map, the item or the list with this key: `delete`, `replace` or `merge`.
const DIRECTIVE: &str = "$patch";
/// The fields that a map keeps.
const RETAIN: &str = "$retainKeys";
/// Before the name of a list: the order of its items.
const ORDER: &str = "$setElementOrder/";
/// Before the name of a list: values to remove from it.
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Merges a patch into an object of this kind. Returns whether the object stays.
///
/// # Errors
/// A directive is not known, or an item of a list has no key.
pub(super) fn merge(
    object: &mut Value,
    patch: &Map<String, Value>,
    kind: &Gvk,
) -> Result<bool, PatchProblem> {
    let mut merge = StrategicMerge {
        kind,
        path: Vec::new(),
    };
    merge.merge_value(object, patch)
}

/// The value of `$patch`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MergeDirective {
    Delete,
    Merge,
    Replace,
}

struct StrategicMerge<'a> {
    kind: &'a Gvk,
    /// The fields above the current one.
    path: Vec<&'a str>,
}

impl<'a> StrategicMerge<'a> {
    /// Merges a map into a value, which becomes a map. Returns whether it stays.
    fn merge_value(
        &mut self,
        value: &mut Value,
        patch: &'a Map<String, Value>,
    ) -> Result<bool, PatchProblem> {
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        let Value::Object(map) = value else {
            return Ok(true);
        };
        match self.read_directive(patch)? {
            Some(MergeDirective::Delete) => return Ok(false),
            Some(MergeDirective::Replace) => {
                let plain = patch.iter().filter(|(name, _)| *name != DIRECTIVE);
                *map = plain
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                return Ok(true);
            }
            Some(MergeDirective::Merge) | None => {}
        }
        for (name, value) in patch {
            if let Some(list) = name.strip_prefix(DELETE_FROM) {
                self.delete_values(map, list, value)?;
            } else if name != DIRECTIVE && name != RETAIN && !name.starts_with(ORDER) {
                self.path.push(name);
                self.merge_field(map, name, value)?;
                self.path.pop();
            }
        }
        for (name, order) in patch {
            if let Some(list) = name.strip_prefix(ORDER) {
                self.set_order(map, list, order)?;
            }
        }
        if let Some(retained) = patch.get(RETAIN) {
            let retained = self.read_list(RETAIN, retained)?;
            map.retain(|name, _| retained.iter().any(|one| one == name.as_str()));
        }
        Ok(true)
    }

    fn merge_field(
        &mut self,
        map: &mut Map<String, Value>,
        name: &'a str,
        patch: &'a Value,
    ) -> Result<(), PatchProblem> {
        let stays = match patch {
            Value::Null => false,
            Value::Object(patch) => {
                let slot = map.entry(name).or_insert(Value::Null);
                self.merge_value(slot, patch)?
            }
            Value::Array(items) => {
                let slot = map.entry(name).or_insert(Value::Null);
                self.merge_list(slot, items)?
            }
            scalar => {
                map.insert(name.to_owned(), scalar.clone());
                true
            }
        };
        if !stays {
            map.remove(name);
        }
        Ok(())
    }

    /// Merges a list. Returns whether it stays.
    fn merge_list(&mut self, list: &mut Value, patch: &'a [Value]) -> Result<bool, PatchProblem> {
        let mut merge = lists::find_merge(self.kind, &self.path);
        let mut items = Vec::new();
        for item in patch {
            // An item that is only a directive is about the list.
            match item.as_object().filter(|item| item.len() == 1) {
                Some(only) if only.contains_key(DIRECTIVE) => match self.read_directive(only)? {
                    Some(MergeDirective::Delete) => return Ok(false),
                    Some(MergeDirective::Replace) => merge = None,
                    Some(MergeDirective::Merge) | None => {}
                },
                _ => items.push(item),
            }
        }
        let live = match list {
            Value::Array(live) => std::mem::take(live),
            _ => Vec::new(),
        };
        *list = match merge {
            Some(ListMerge::Keys(keys)) => self.merge_items(live, &items, keys)?,
            Some(ListMerge::Set) => {
                let mut all: Vec<Value> = items.into_iter().cloned().collect();
                for value in live {
                    if !all.contains(&value) {
                        all.push(value);
                    }
                }
                all.into()
            }
            None => {
                if items.iter().any(|item| item.get(DIRECTIVE).is_some()) {
                    return Err(PatchProblem::ItemDirective { path: self.place() });
                }
                items.into_iter().cloned().collect()
            }
        };
        Ok(true)
    }

    /// Merges items with equal keys. Those of the patch come first.
    fn merge_items(
        &mut self,
        mut live: Vec<Value>,
        patch: &[&'a Value],
        keys: &[&'static str],
    ) -> Result<Value, PatchProblem> {
        let mut merged = Vec::new();
        for item in patch {
            let first = keys.first().copied().unwrap_or_default();
            let is_key = |value: &&Value| !value.is_null() && !value.is_object();
            let (Some(item), Some(_)) = (item.as_object(), item.get(first).filter(is_key)) else {
                let path = self.place();
                return Err(PatchProblem::NoKey { path, key: first });
            };
            let found = self.find_item(&live, item, keys)?;
            let mut value = found.map_or(Value::Null, |at| live.remove(at));
            if self.merge_value(&mut value, item)? {
                merged.push(value);
            }
        }
        merged.append(&mut live);
        Ok(merged.into())
    }

    /// Finds the item that `wanted` changes. All of their keys are equal, or else only those that both have: a port may leave its protocol
    /// out. Then the item must be the only such one.
    fn find_item(
        &self,
        live: &[Value],
        wanted: &Map<String, Value>,
        keys: &[&'static str],
    ) -> Result<Option<usize>, PatchProblem> {
        let is_equal = |item: &Value| keys.iter().all(|key| item.get(key) == wanted.get(*key));
        if let Some(at) = live.iter().position(is_equal) {
            return Ok(Some(at));
        }
        let is_similar = |item: &Value| {
            let mut keys = keys.iter().enumerate();
            keys.all(|(number, key)| match (item.get(key), wanted.get(*key)) {
                (Some(one), Some(other)) => one == other,
                _ => number > 0,
            })
        };
        let mut similar = (0..live.len()).filter(|at| live.get(*at).is_some_and(is_similar));
        match (similar.next(), similar.next()) {
            (Some(_), Some(_)) => Err(PatchProblem::Ambiguous {
                path: self.place(),
                keys: keys.join(", "),
            }),
            (found, _) => Ok(found),
        }
    }

    /// Removes values from a list of scalars.
    fn delete_values(
        &self,
        map: &mut Map<String, Value>,
        list: &str,
        values: &Value,
    ) -> Result<(), PatchProblem> {
        let values = self.read_list(DELETE_FROM, values)?;
        if let Some(Value::Array(live)) = map.get_mut(list) {
            live.retain(|value| !values.contains(value));
        }
        Ok(())
    }

    /// Orders a list. Items that the order does not name come last.
    fn set_order(
        &mut self,
        map: &mut Map<String, Value>,
        list: &'a str,
        order: &Value,
    ) -> Result<(), PatchProblem> {
        let order = self.read_list(ORDER, order)?;
        self.path.push(list);
        let merge = lists::find_merge(self.kind, &self.path);
        self.path.pop();
        let is_named = |item: &Value, named: &Value| match merge {
            Some(ListMerge::Keys(keys)) => {
                let mut keys = keys.iter();
                keys.all(|key| named.get(key).is_none_or(|it| item.get(key) == Some(it)))
            }
            _ => item == named,
        };
        if let Some(Value::Array(live)) = map.get_mut(list) {
            let turn = |item: &Value| order.iter().position(|named| is_named(item, named));
            live.sort_by_key(|item| turn(item).unwrap_or(usize::MAX));
        }
        Ok(())
    }

    fn read_directive(
        &self,
        patch: &Map<String, Value>,
    ) -> Result<Option<MergeDirective>, PatchProblem> {
        let Some(written) = patch.get(DIRECTIVE) else {
            return Ok(None);
        };
        match written.as_str() {
            Some("delete") => Ok(Some(MergeDirective::Delete)),
            Some("merge") => Ok(Some(MergeDirective::Merge)),
            Some("replace") => Ok(Some(MergeDirective::Replace)),
            _ => Err(PatchProblem::Directive { path: self.place() }),
        }
    }

    fn read_list<'v>(
        &self,
        directive: &'static str,
        value: &'v Value,
    ) -> Result<&'v [Value], PatchProblem> {
        let list = value.as_array().map(Vec::as_slice);
        list.ok_or_else(|| PatchProblem::NotAList {
            path: self.place(),
            directive,
        })
    }

    /// Returns the current field for messages.
    fn place(&self) -> String {
        match self.path.is_empty() {
            true => "the object".to_owned(),
            false => self.path.join("."),
        }
    }
}
