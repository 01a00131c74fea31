//! Dotted paths into values: `a.b`. A dot in a key is written as `\.`. Paths cannot lead into lists.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// Maximum number of keys in a path.
const MAX_KEYS: usize = 64;

/// A dotted path of at least one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValuePath(Vec<String>);

/// Why a path is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// A key before, between or after the dots is empty.
    #[error("a key of the path is empty")]
    EmptyKey,
    /// The path ends with a backslash.
    #[error("the path ends in a backslash: write \\\\ for one, \\. for a dot")]
    Backslash,
    /// The path has too many keys.
    #[error("the path has more than {MAX_KEYS} keys")]
    TooLong,
    /// The path leads through a text, a number or a list.
    #[error("{at} is not a map, so nothing can be set in it")]
    NotAMap {
        /// The path up to this value.
        at: String,
    },
}

/// Escapes a key for a JSON pointer (RFC 6901).
#[must_use]
pub fn escape_key(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Unescapes a key of a JSON pointer.
#[must_use]
pub fn unescape_key(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

impl ValuePath {
    /// Parses a dotted path. A backslash takes the next character literally.
    ///
    /// # Errors
    /// [`PathError`]: an empty key, a backslash at the end, or too many keys.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let mut keys = vec![String::new()];
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let c = match c {
                '.' => {
                    keys.push(String::new());
                    continue;
                }
                '\\' => chars.next().ok_or(PathError::Backslash)?,
                c => c,
            };
            if let Some(key) = keys.last_mut() {
                key.push(c);
            }
        }
        if keys.iter().any(String::is_empty) {
            return Err(PathError::EmptyKey);
        }
        if keys.len() > MAX_KEYS {
            return Err(PathError::TooLong);
        }
        Ok(Self(keys))
    }

    /// Returns the path of these keys, outermost first, or `None` if there are none.
    #[must_use]
    pub fn from_keys(keys: Vec<String>) -> Option<Self> {
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// Returns the keys, outermost first.
    #[must_use]
    pub fn keys(&self) -> &[String] {
        &self.0
    }

    /// Returns the path as a JSON pointer (RFC 6901), for patches and the annotation of defaulted values (semantics 10.1).
    #[must_use]
    pub fn to_pointer(&self) -> String {
        self.0
            .iter()
            .flat_map(|key| ["/".to_owned(), escape_key(key)])
            .collect()
    }

    /// Returns the value at the path, which may be null.
    #[must_use]
    pub fn get<'a>(&self, values: &'a Value) -> Option<&'a Value> {
        self.0
            .iter()
            .try_fold(values, |value, key| value.as_object()?.get(key))
    }

    /// Sets a value. Missing and null maps above it are created.
    ///
    /// # Errors
    /// [`PathError::NotAMap`] if the path leads through another value; then nothing is changed.
    pub fn set(&self, values: &mut Value, value: Value) -> Result<(), PathError> {
        self.check_parents(values)?;
        let mut at = values;
        for key in &self.0 {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            let Value::Object(map) = at else {
                return Ok(());
            };
            at = map.entry(key).or_insert(Value::Null);
        }
        *at = value;
        Ok(())
    }

    /// Removes a value. Maps that become empty stay.
    pub fn remove(&self, values: &mut Value) -> Option<Value> {
        let (last, way) = self.0.split_last()?;
        way.iter()
            .try_fold(values, |value, key| value.as_object_mut()?.get_mut(key))?
            .as_object_mut()?
            .remove(last)
    }

    /// Checks that all values above the path are maps or missing.
    fn check_parents(&self, values: &Value) -> Result<(), PathError> {
        let mut at = values;
        for (index, key) in self.0.iter().enumerate() {
            match at {
                Value::Null => return Ok(()),
                Value::Object(map) => match map.get(key) {
                    Some(next) => at = next,
                    None => return Ok(()),
                },
                _ => {
                    let way = self.0.iter().take(index).cloned().collect();
                    let at = match index {
                        0 => "the whole".to_owned(),
                        _ => Self(way).to_string(),
                    };
                    return Err(PathError::NotAMap { at });
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, key) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            f.write_str(&key.replace('\\', "\\\\").replace('.', "\\."))?;
        }
        Ok(())
    }
}

impl Serialize for ValuePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> ValuePath {
        ValuePath::parse(text).unwrap()
    }

    #[test]
    fn paths_are_read_and_written() {
        for (text, keys, pointer) in [
            ("a", &["a"][..], "/a"),
            ("a.b", &["a", "b"], "/a/b"),
            (r"a\.b.c\\d", &["a.b", r"c\d"], r"/a.b/c\d"),
            ("a/b~.c", &["a/b~", "c"], "/a~1b~0/c"),
        ] {
            assert_eq!(path(text).keys(), keys);
            assert_eq!(path(text).to_pointer(), pointer);
            assert_eq!(path(text).to_string(), text);
        }
        for text in ["", ".", "a.", ".a", "a..b"] {
            assert_eq!(ValuePath::parse(text), Err(PathError::EmptyKey), "{text}");
        }
        assert_eq!(ValuePath::parse("a\\"), Err(PathError::Backslash));
        assert_eq!(ValuePath::parse(&"a.".repeat(64)), Err(PathError::EmptyKey));
        assert_eq!(
            ValuePath::parse(&format!("{}a", "a.".repeat(64))),
            Err(PathError::TooLong)
        );
    }

    #[test]
    fn values_are_found_set_and_removed() {
        let mut values = json!({"a": {"b": 1, "n": null}});
        assert_eq!(path("a.b").get(&values), Some(&json!(1)));
        assert_eq!(path("a.b.c").get(&values), None);
        path("a.n.x").set(&mut values, json!(2)).unwrap();
        path("c.d").set(&mut values, json!([])).unwrap();
        assert_eq!(
            values,
            json!({"a": {"b": 1, "n": {"x": 2}}, "c": {"d": []}})
        );
        let before = values.clone();
        for (text, at) in [("a.b.c", "a.b"), ("c.d.e.f", "c.d")] {
            let error = path(text).set(&mut values, json!(1)).unwrap_err();
            assert_eq!(error, PathError::NotAMap { at: at.into() });
        }
        assert_eq!(values, before);
        assert_eq!(path("a.n.x").remove(&mut values), Some(json!(2)));
        assert_eq!(path("a.x.y").remove(&mut values), None);
        assert_eq!(values, json!({"a": {"b": 1, "n": {}}, "c": {"d": []}}));
    }
}
