//! Paths of fields in the notation of managedFields: `f:spec`, `k:{"name":"web"}`, `v:"a"`.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::entrance;

/// The path of a field, from the root of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManagedPath(Vec<String>);

impl ManagedPath {
    /// Returns the path of the field `name` below this one.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        self.child(format!("f:{name}"))
    }

    /// Returns the path of the field that is nested in this one by `names`.
    #[must_use]
    pub fn fields(&self, names: &[&str]) -> Self {
        names
            .iter()
            .fold(self.clone(), |path, name| path.field(name))
    }

    /// Returns the path of an item of this list, in which names identify the items.
    #[must_use]
    pub fn item(&self, name: &str) -> Self {
        self.child(format!("k:{}", json!({"name": name})))
    }

    fn child(&self, segment: String) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    /// Returns the value at this path.
    #[must_use]
    pub fn get<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0
            .iter()
            .try_fold(object, |value, segment| match value {
                Value::Object(fields) => fields.get(segment.strip_prefix("f:")?),
                Value::Array(items) => items.iter().find(|item| is_item(item, segment)),
                _ => None,
            })
    }

    /// Returns the map at this path, or `None` if there is none.
    #[must_use]
    pub fn get_mut<'a>(&self, object: &'a mut Value) -> Option<&'a mut Map<String, Value>> {
        let found = self
            .0
            .iter()
            .try_fold(object, |value, segment| match value {
                Value::Object(fields) => fields.get_mut(segment.strip_prefix("f:")?),
                Value::Array(items) => items.iter_mut().find(|item| is_item(item, segment)),
                _ => None,
            });
        found?.as_object_mut()
    }

    /// Removes the value at this path, and the maps above it that become empty.
    pub fn remove(&self, object: &mut Value) {
        let Some((last, above)) = self.0.split_last() else {
            return;
        };
        let above = Self(above.to_vec());
        let (Some(fields), Some(name)) = (above.get_mut(object), last.strip_prefix("f:")) else {
            return;
        };
        fields.remove(name);
        if fields.is_empty() && !above.0.is_empty() {
            above.remove(object);
        }
    }

    /// Sets the value at this path, if the map that contains it exists.
    pub fn set(&self, object: &mut Value, value: Value) {
        let Some((last, above)) = self.0.split_last() else {
            return;
        };
        let fields = Self(above.to_vec()).get_mut(object);
        if let (Some(fields), Some(name)) = (fields, last.strip_prefix("f:")) {
            fields.insert(name.to_owned(), value);
        }
    }

    /// Returns the map at this path. Missing maps are created, missing list items are not.
    pub fn get_or_create<'a>(&self, object: &'a mut Value) -> Option<&'a mut Map<String, Value>> {
        let found = self
            .0
            .iter()
            .try_fold(object, |value, segment| match value {
                Value::Object(fields) => {
                    let name = segment.strip_prefix("f:")?.to_owned();
                    let field = fields.entry(name).or_insert(Value::Null);
                    if field.is_null() {
                        *field = json!({});
                    }
                    Some(field)
                }
                Value::Array(items) => items.iter_mut().find(|item| is_item(item, segment)),
                _ => None,
            });
        found?.as_object_mut()
    }

    /// Returns whether a set of fields contains this field, a field below it, or a whole field above it.
    #[must_use]
    pub fn is_in(&self, set: &Map<String, Value>) -> bool {
        let mut set = set;
        for segment in &self.0 {
            match set.get(segment).and_then(Value::as_object) {
                Some(below) if below.is_empty() => return true,
                Some(below) => set = below,
                None => return false,
            }
        }
        true
    }

    /// Removes this field, and all fields below it, from a set of fields.
    pub(super) fn take_from(&self, set: &mut Map<String, Value>) {
        remove_from_set(set, &self.0);
    }

    /// Adds this whole field to a set of fields.
    pub(super) fn add_to(&self, set: &mut Map<String, Value>) {
        let mut set = set;
        for (index, segment) in self.0.iter().enumerate() {
            let is_new = !set.contains_key(segment);
            let below = set.entry(segment.clone()).or_insert_with(|| json!({}));
            let Some(below) = below.as_object_mut() else {
                return;
            };
            let is_last = index + 1 == self.0.len();
            // If a whole field is owned together with fields below it, the entry `.` stands for the field itself.
            if is_last != below.is_empty() && !is_new {
                below.insert(".".to_owned(), json!({}));
            }
            set = below;
        }
    }
}

/// Removes the field at a path from a set. Recursion ends with the path.
fn remove_from_set(set: &mut Map<String, Value>, path: &[String]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        set.remove(first);
    } else if let Some(below) = set.get_mut(first).and_then(Value::as_object_mut) {
        let was_whole = below.is_empty();
        remove_from_set(below, rest);
        if below.is_empty() && !was_whole {
            set.remove(first);
        }
    }
}

/// Returns whether `k:{"name":"web"}` or `v:"a"` identifies an item of a list.
#[must_use]
pub fn is_item(item: &Value, segment: &str) -> bool {
    let parsed = |text: &str| entrance::from_str::<Value>(text).ok();
    if let Some(keys) = segment.strip_prefix("k:") {
        let keys = parsed(keys);
        let keys = keys.as_ref().and_then(Value::as_object);
        return keys.is_some_and(|keys| keys.iter().all(|(key, value)| item[key] == *value));
    }
    let value = segment.strip_prefix("v:").and_then(parsed);
    value.is_some_and(|value| value == *item)
}

impl fmt::Display for ManagedPath {
    /// Writes the path as the server does in conflicts, without the leading dot: `spec.ports[port=80,protocol="TCP"].nodePort`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            match segment.split_once(':') {
                Some(("f", name)) if index == 0 => f.write_str(name)?,
                Some(("f", name)) => write!(f, ".{name}")?,
                Some(("k", keys)) => {
                    let keys: Value = entrance::from_str(keys).unwrap_or_default();
                    let keys = keys.as_object().into_iter().flatten();
                    let keys: Vec<String> =
                        keys.map(|(key, value)| format!("{key}={value}")).collect();
                    write!(f, "[{}]", keys.join(","))?;
                }
                Some(("v", value)) => write!(f, "[={value}]")?,
                _ => write!(f, "[{segment}]")?,
            }
        }
        Ok(())
    }
}

/// Returns the fields of `before` that are not in `after`, except for those that only contain others.
#[must_use]
pub fn find_lost_paths(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Vec<ManagedPath> {
    let mut found = Vec::new();
    collect_lost(&ManagedPath::default(), before, Some(after), &mut found);
    found
}

/// Collects the fields that are lost. Recursion ends with the depth of the object.
fn collect_lost(
    at: &ManagedPath,
    before: &Map<String, Value>,
    after: Option<&Map<String, Value>>,
    found: &mut Vec<ManagedPath>,
) {
    for (segment, below) in before {
        let Some(below) = below.as_object().filter(|_| segment != ".") else {
            continue;
        };
        let path = at.child(segment.clone());
        let kept = after.and_then(|after| after.get(segment)?.as_object());
        match (below.is_empty(), kept) {
            (true, None) => found.push(path),
            (true, Some(_)) => {}
            // The field is now owned as a whole.
            (false, Some(kept)) if kept.is_empty() => {}
            (false, kept) => collect_lost(&path, below, kept, found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_path_is_added_taken_and_written() {
        let spec = ManagedPath::default().field("spec");
        let image = spec.field("containers").item("web").field("image");
        assert_eq!(image.to_string(), "spec.containers[name=\"web\"].image");
        let object = json!({"spec": {"containers": [{"name": "web", "image": "a"}]}});
        assert_eq!(image.get(&object), Some(&json!("a")));
        for (before, wanted) in [
            (json!({}), json!({"f:spec": {"f:strategy": {}}})),
            (
                json!({"f:spec": {"f:strategy": {"f:type": {}}}}),
                json!({"f:spec": {"f:strategy": {".": {}, "f:type": {}}}}),
            ),
            (
                json!({"f:spec": {"f:strategy": {}}}),
                json!({"f:spec": {"f:strategy": {}}}),
            ),
        ] {
            let mut changed = set(before.clone());
            let strategy = spec.field("strategy");
            strategy.add_to(&mut changed);
            assert_eq!(Value::Object(changed.clone()), wanted, "{before}");
            assert!(
                strategy.is_in(&changed)
                    && strategy
                        .field("type")
                        .is_in(&set(json!({"f:spec": {"f:strategy": {}}})))
            );
            strategy.take_from(&mut changed);
            assert_eq!(changed, set(json!({})), "{before}");
        }
    }

    #[test]
    fn fields_that_are_not_owned_any_more() {
        let before = set(
            json!({"f:data": {"f:a": {}, "f:b": {}}, "f:spec": {"f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:nodePort": {}}}}}),
        );
        let after = set(json!({"f:data": {"f:a": {}}}));
        let lost: Vec<String> = find_lost_paths(&before, &after)
            .iter()
            .map(ToString::to_string)
            .collect();
        let port = "spec.ports[port=80,protocol=\"TCP\"].nodePort";
        assert_eq!(lost, ["data.b", port]);
    }
}
