//! Removes values, so that those of lower layers take effect again (semantics 9).

use std::fmt;

use serde_json::{Map, Value};

use super::{AssignmentStep, path_text};

/// The path of a value to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueRemoval {
    /// The first step is a key.
    pub(super) steps: Vec<AssignmentStep>,
}

impl ValueRemoval {
    /// Returns whether there is a value at the path, which may be null.
    #[must_use]
    pub fn is_in(&self, values: &Value) -> bool {
        let mut steps = self.steps.iter();
        let found = steps.try_fold(values, |at, step| match step {
            AssignmentStep::Key(key) => at.as_object()?.get(key),
            AssignmentStep::Index(index) => at.as_array()?.get(*index),
        });
        found.is_some()
    }
}

impl fmt::Display for ValueRemoval {
    /// Writes the path as in a flag.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&path_text(&self.steps))
    }
}

/// Removes values. A path without a value changes nothing.
///
/// Indices refer to the lists before any removal. Maps that become empty are removed as well, because an empty map would replace a text of
/// a lower layer. Lists stay, because an empty list is a value.
pub fn remove_values(values: &mut Value, removals: &[ValueRemoval]) {
    let mut from_the_end: Vec<&[AssignmentStep]> =
        removals.iter().map(|one| one.steps.as_slice()).collect();
    from_the_end.sort_unstable();
    from_the_end.dedup();
    for steps in from_the_end.into_iter().rev() {
        remove_at(values, steps);
    }
}

fn remove_at(at: &mut Value, steps: &[AssignmentStep]) {
    match (at, steps) {
        (Value::Object(map), [AssignmentStep::Key(key)]) => {
            map.remove(key);
        }
        (Value::Array(items), [AssignmentStep::Index(index)]) if *index < items.len() => {
            items.remove(*index);
        }
        (Value::Object(map), [AssignmentStep::Key(key), rest @ ..]) => {
            let Some(below) = map.get_mut(key) else {
                return;
            };
            let was_empty = is_empty(below);
            remove_at(below, rest);
            if !was_empty && is_empty(below) {
                map.remove(key);
            }
        }
        (Value::Array(items), [AssignmentStep::Index(index), rest @ ..]) => {
            if let Some(item) = items.get_mut(*index) {
                remove_at(item, rest);
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::parse_removals;
    use super::*;
    use crate::values::ValuesError;

    /// The values without what the flags name, and the paths that have no value.
    fn without(values: &Value, flags: &[&str]) -> (Value, Vec<String>) {
        let all = flags.iter().flat_map(|flag| parse_removals(flag).unwrap());
        let all: Vec<ValueRemoval> = all.collect();
        let absent = all.iter().filter(|one| !one.is_in(values));
        let absent = absent.map(ToString::to_string).collect();
        let mut left = values.clone();
        remove_values(&mut left, &all);
        (left, absent)
    }

    #[test]
    fn values_go_with_the_maps_that_only_they_were_in() {
        let values = json!({
            "a": {"b": {"c": 1}}, "n": null, "e": {}, "l": [0, {"x": 1, "y": {"z": 1}}, 2, [3, 4]], "a.b/c": 1,
        });
        for (flags, path, after) in [
            (&["a.b.c"][..], "/a", None),
            (&["a.b"], "/a", None),
            (&["n"], "/n", None),
            (&["e"], "/e", None),
            (&[r"a\.b/c"], "/a.b~1c", None),
            (
                &["l[0]"],
                "/l",
                Some(json!([{"x": 1, "y": {"z": 1}}, 2, [3, 4]])),
            ),
            // As the list is before, in whatever order, and each once.
            (
                &["l[0],l[2]", "l[0]"],
                "/l",
                Some(json!([{"x": 1, "y": {"z": 1}}, [3, 4]])),
            ),
            (&["l[3][0]"], "/l/3", Some(json!([4]))),
            (&["l[3][1]", "l[3][0]"], "/l/3", Some(json!([]))),
            (&["l[1].y.z"], "/l/1", Some(json!({"x": 1}))),
            // An item has its place in the list, also without content.
            (&["l[1].x", "l[1].y"], "/l/1", Some(json!({}))),
            (&["a.b.c", "a"], "/a", None),
        ] {
            let (left, absent) = without(&values, flags);
            assert_eq!(left.pointer(path), after.as_ref(), "{flags:?}: {left}");
            assert_eq!(absent, Vec::<String>::new(), "{flags:?}");
        }
    }

    #[test]
    fn paths_without_a_value_change_nothing_and_are_known() {
        let values = json!({"a": {"b": 1}, "l": [0], "e": {}, "t": "text"});
        for flag in [
            "x", "a.c", "a.b.c", "l[1]", "l[0].x", "l.x", "e.x", "t[0]", "a[0]",
        ] {
            assert_eq!(
                without(&values, &[flag]),
                (values.clone(), vec![flag.to_owned()]),
                "{flag}"
            );
        }
    }

    #[test]
    fn paths_are_spelled_as_in_assignments() {
        let words = |flag: &str| match parse_removals(flag) {
            Ok(paths) => paths.iter().map(ToString::to_string).collect::<Vec<_>>(),
            Err(error @ ValuesError::Set { .. }) => {
                let problem = std::error::Error::source(&error).unwrap();
                vec![format!("{error}: {problem}")]
            }
            Err(error) => vec![error.to_string()],
        };
        let index = "an index is a number from 0 to 65536, as in a[0]";
        let after = "an index must be followed by =, a dot or another index";
        for (flag, expected) in [
            ("a.b[0][1].c", &["a.b[0][1].c"][..]),
            ("a,b[0],c", &["a", "b[0]", "c"]),
            (r"a\,b", &[r"a\,b"]),
            ("", &["path \"\": a key of the path is empty"]),
            ("a..b", &["path \"a..b\": a key of the path is empty"]),
            ("a.", &["path \"a.\": a key of the path is empty"]),
            ("a[x]", &[&format!("path \"a[x]\": {index}")]),
            ("a[0]b", &[&format!("path \"a[0]b\": {after}")]),
            (
                "a.b=s3cret",
                &["path \"a.b\": give only the path, without = and a value"],
            ),
        ] {
            assert_eq!(words(flag), expected, "{flag}");
        }
    }
}
