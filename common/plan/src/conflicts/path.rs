//! Field paths as the API server writes them in conflicts (structured-merge-diff): `spec.replicas`,
//! `spec.ports[port=80,protocol="TCP"].targetPort`, `spec.finalizers[="a"]`, `args[0]`.
//!
//! The server does not quote names in them (`metadata.labels.app.kubernetes.io/name`), so a path can only be resolved against an object.

use std::cmp::Reverse;

use serde_json::Value;

use common::entrance;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PathStep {
    Key(String),
    Index(usize),
}

/// The value at a path.
#[must_use]
pub fn get<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    let mut value = object;
    for place in resolve(object, field)? {
        value = match place {
            PathStep::Key(key) => value.get(key)?,
            PathStep::Index(index) => value.get(index)?,
        };
    }
    Some(value)
}

/// Removes the value at a path; returns whether it existed.
pub fn remove(object: &mut Value, field: &str) -> bool {
    let Some(mut places) = resolve(object, field) else {
        return false;
    };
    let Some(last) = places.pop() else {
        return false;
    };
    let mut value = object;
    for place in places {
        let next = match place {
            PathStep::Key(key) => value.get_mut(key),
            PathStep::Index(index) => value.get_mut(index),
        };
        match next {
            Some(next) => value = next,
            None => return false,
        }
    }
    match (value, last) {
        (Value::Object(fields), PathStep::Key(key)) => fields.remove(&key).is_some(),
        (Value::Array(items), PathStep::Index(index)) if index < items.len() => {
            items.remove(index);
            true
        }
        _ => false,
    }
}

/// Removes the values at several paths, nested ones first.
///
/// # Errors
/// The first path that has no value.
pub fn remove_all<'f>(
    object: &mut Value,
    fields: impl IntoIterator<Item = &'f str>,
) -> Result<(), &'f str> {
    let mut fields: Vec<&str> = fields.into_iter().collect();
    fields.sort_by_key(|field| Reverse(field.len()));
    match fields.into_iter().find(|field| !remove(object, field)) {
        Some(field) => Err(field),
        None => Ok(()),
    }
}

/// Splits `text` at separators that are neither in brackets nor in quotes.
#[must_use]
pub fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped, mut depth) = (false, false, 0_usize);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '[' if !is_quoted => depth += 1,
            ']' if !is_quoted => depth = depth.saturating_sub(1),
            _ if letter == separator && !is_quoted && depth == 0 => {
                parts.extend(text.get(begin..at));
                begin = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.extend(text.get(begin..));
    parts
}

fn resolve(object: &Value, field: &str) -> Option<Vec<PathStep>> {
    let field = field.strip_prefix('.').unwrap_or(field);
    let mut places = find_steps(object, &format!(".{field}"))?;
    places.reverse();
    Some(places)
}

/// Resolves the path `rest` in `value`, last step first. The recursion ends with the object.
fn find_steps(value: &Value, rest: &str) -> Option<Vec<PathStep>> {
    if rest.is_empty() {
        return Some(Vec::new());
    }
    match value {
        Value::Object(fields) => {
            let rest = rest.strip_prefix('.')?;
            let after = |key: &str| {
                let after = rest.strip_prefix(key)?;
                (after.is_empty() || after.starts_with(['.', '['])).then_some(after)
            };
            let mut found: Vec<_> = fields
                .iter()
                .filter_map(|(key, value)| Some((key, value, after(key)?)))
                .collect();
            // Longest key first: `data.a.yaml` is the key `a.yaml` rather than `yaml` in `a`.
            found.sort_by_key(|(key, ..)| Reverse(key.len()));
            found.into_iter().find_map(|(key, value, after)| {
                let mut places = find_steps(value, after)?;
                places.push(PathStep::Key(key.clone()));
                Some(places)
            })
        }
        Value::Array(items) => {
            let (selector, after) = selector(rest)?;
            let index = position(items, selector)?;
            let mut places = find_steps(items.get(index)?, after)?;
            places.push(PathStep::Index(index));
            Some(places)
        }
        _ => None,
    }
}

/// Splits `[selector]rest`.
fn selector(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('[')?;
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, letter) in inner.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ']' if !is_quoted => return Some((inner.get(..at)?, inner.get(at + 1..)?)),
            _ => {}
        }
    }
    None
}

/// Finds the list item that a selector means. If no item has all of its keys, an item that lacks some of them matches as well, because the
/// schema may fill in a default (`protocol`).
fn position(items: &[Value], selector: &str) -> Option<usize> {
    if let Ok(index) = selector.parse() {
        return Some(index);
    }
    if let Some(value) = selector.strip_prefix('=') {
        let value: Value = entrance::from_str(value).ok()?;
        return items.iter().position(|item| *item == value);
    }
    let keys: Option<Vec<(&str, Value)>> = split(selector, ',')
        .into_iter()
        .map(|pair| {
            let (key, value) = pair.split_once('=')?;
            Some((key.trim(), entrance::from_str(value).ok()?))
        })
        .collect();
    let keys = keys?;
    let has = |item: &Value, missing: bool| {
        keys.iter().all(|(key, wanted)| match item.get(key) {
            Some(value) => value == wanted,
            None => missing && item.is_object(),
        })
    };
    let exact = items.iter().position(|item| has(item, false));
    exact.or_else(|| items.iter().position(|item| has(item, true)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"labels": {"a.b/c": "1", "x": "2"}},
            "data": {"a": "3", "a.yaml": "4"},
            "spec": {
                "replicas": 5,
                "externalIPs": ["1.2.3.4"],
                "sets": ["a", "b]\""],
                "ports": [{"port": 80, "targetPort": 6}, {"port": 80, "protocol": "UDP", "targetPort": 7}],
                "containers": [{"name": "main", "env": [{"name": "A", "value": "8"}]}],
            },
        })
    }

    /// Paths as kube-apiserver 1.36.3 wrote them.
    #[test]
    fn values_are_found_and_taken_out() {
        for (field, value) in [
            (".metadata.labels.a.b/c", json!("1")),
            (".metadata.labels.x", json!("2")),
            (".data.a", json!("3")),
            (".data.a.yaml", json!("4")),
            ("spec.replicas", json!(5)),
            (".spec.externalIPs", json!(["1.2.3.4"])),
            (".spec.sets[=\"b]\\\"\"]", json!("b]\"")),
            (".spec.sets[0]", json!("a")),
            (".spec.ports[port=80,protocol=\"TCP\"].targetPort", json!(6)),
            (".spec.ports[port=80,protocol=\"UDP\"].targetPort", json!(7)),
            (
                ".spec.containers[name=\"main\"].env[name=\"A\"].value",
                json!("8"),
            ),
        ] {
            let mut object = object();
            assert_eq!(get(&object, field), Some(&value), "{field}");
            assert!(remove(&mut object, field), "{field}");
            assert_ne!(get(&object, field), Some(&value), "{field}");
        }
    }

    #[test]
    fn what_is_not_there_is_left() {
        for field in [
            "",
            ".",
            "[",
            "[0]",
            "spec.replica",
            "spec.replicas.x",
            "spec.replicas[0]",
            "spec.sets[9]",
            "spec.sets[=\"c\"]",
            "spec.sets[",
            "spec.sets[x]",
            "spec.containers[name=\"other\"].image",
            "spec.containers[name=].image",
            "spec.sets[99999999999999999999]",
        ] {
            let mut changed = object();
            assert_eq!(get(&changed, field), None, "{field}");
            assert!(!remove(&mut changed, field), "{field}");
            assert_eq!(changed, object());
        }
    }
}
