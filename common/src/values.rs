//! Values of an installation: layers and how they merge, forms, dotted paths, and masking (semantics 9 and 10).
//!
//! Their digest is [`crate::manifest::digest::digest`]. Errors never repeat a value, because it could be a secret.

pub mod defaulted;
pub mod form;
pub mod layers;
pub mod mask;
pub mod merge;
pub mod path;
pub mod secret;

use serde_json::{Map, Number, Value};

use crate::manifest::Place;
use crate::manifest::yaml::{YamlOptions, YamlProblem, documents};
use path::{Path, PathError};

/// Why values cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// Not YAML.
    #[error("{place}: cannot be read as YAML")]
    Yaml {
        /// Where.
        place: Place,
        /// What is wrong.
        #[source]
        problem: YamlProblem,
    },
    /// Something other than one map.
    #[error("{place}: values are one map, as in `replicas: 3`")]
    NotAMap {
        /// Where.
        place: Place,
    },
    /// A number that the API server would change.
    #[error(
        "{file}: {path}: a number of that size loses digits in the API server; write it in quotes"
    )]
    TooManyDigits {
        /// The file, or the key of a Secret.
        file: String,
        /// The path of the value.
        path: String,
    },
    /// An assignment without `=`.
    #[error("{path:?} has no value; write PATH=VALUE")]
    NoValue {
        /// What was written.
        path: String,
    },
    /// An assignment of text in quotes that is not a JSON string.
    #[error("the value of {path:?} begins with a quote, but is not a JSON string")]
    Quote {
        /// The path.
        path: String,
    },
    /// An assignment to a path that cannot be used.
    #[error("value {path:?}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong.
        #[source]
        problem: PathError,
    },
}

/// Reads the values of a file or of a key of a Secret: one YAML map. Empty input is an empty map.
///
/// # Errors
/// [`ValuesError`]; `file` is the name in places.
pub fn read(bytes: &[u8], file: &str) -> Result<Value, ValuesError> {
    let place = |line, column| Place {
        file: file.to_owned(),
        line,
        column,
    };
    let mut values = Value::Null;
    for document in documents(bytes, &YamlOptions::default()) {
        let document = document.map_err(|error| ValuesError::Yaml {
            place: place(error.line, error.column),
            problem: error.problem,
        })?;
        match document.value {
            Value::Null => {}
            map @ Value::Object(_) if values.is_null() => values = map,
            _ => {
                let place = place(document.line, 0);
                return Err(ValuesError::NotAMap { place });
            }
        }
    }
    let mut path = Vec::new();
    if changed_number(&values, &mut path) {
        return Err(ValuesError::TooManyDigits {
            file: file.to_owned(),
            path: path.join("."),
        });
    }
    Ok(if values.is_null() {
        Value::Object(Map::new())
    } else {
        values
    })
}

/// Writes an assignment `PATH=VALUE` into values.
///
/// `true`, `false` and `null` have their YAML meaning; so has a number, but only where it is written as JSON would
/// print it: `1.10` and `007` stay text, because they would be printed differently. So do whole numbers beyond 64 bits with a sign,
/// of which the API server would keep fewer digits. In double quotes everything is text.
///
/// # Errors
/// [`ValuesError`] for an assignment without `=`, with an open quote, or with a path through a value that is not a
/// map.
pub fn set_from_flag(values: &mut Value, flag: &str) -> Result<(), ValuesError> {
    let Some((path, text)) = flag.split_once('=') else {
        let path = flag.to_owned();
        return Err(ValuesError::NoValue { path });
    };
    let error = |problem| ValuesError::Path {
        path: path.to_owned(),
        problem,
    };
    let Some(value) = typed(text) else {
        let path = path.to_owned();
        return Err(ValuesError::Quote { path });
    };
    Path::parse(path)
        .map_err(error)?
        .set(values, value)
        .map_err(error)
}

/// Whether the API server stores a number as it is: a whole one beyond 64 bits with a sign it stores as a floating point number, which
/// has fewer digits.
fn is_kept(number: &Number) -> bool {
    !number.is_u64() || number.is_i64()
}

/// The path of the first number that the API server would change.
fn changed_number(value: &Value, path: &mut Vec<String>) -> bool {
    match value {
        Value::Number(number) => !is_kept(number),
        Value::Object(map) => map.iter().any(|(key, value)| {
            path.push(key.clone());
            changed_number(value, path) || path.pop().is_none()
        }),
        Value::Array(items) => items.iter().enumerate().any(|(index, value)| {
            path.push(index.to_string());
            changed_number(value, path) || path.pop().is_none()
        }),
        _ => false,
    }
}

/// `None` for a quote that is not closed.
fn typed(text: &str) -> Option<Value> {
    if text.starts_with('"') {
        return serde_json::from_str::<String>(text).ok().map(Value::String);
    }
    Some(match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        _ => match text.parse::<Number>() {
            Ok(number) if number.to_string() == text && is_kept(&number) => Value::Number(number),
            _ => Value::String(text.to_owned()),
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn assigned_values_are_typed_without_loss() {
        for (flag, values) in [
            ("a.b=3", json!({"a": {"b": 3}})),
            ("a=-1.5", json!({"a": -1.5})),
            ("a=true", json!({"a": true})),
            ("a=null", json!({"a": null})),
            ("a=", json!({"a": ""})),
            ("a=1.10", json!({"a": "1.10"})),
            ("a=007", json!({"a": "007"})),
            (
                "a=18446744073709551616",
                json!({"a": "18446744073709551616"}),
            ),
            (
                "a=12345678901234567890",
                json!({"a": "12345678901234567890"}),
            ),
            (
                "a=9223372036854775807",
                json!({"a": 9_223_372_036_854_775_807_i64}),
            ),
            ("a=yes", json!({"a": "yes"})),
            ("a=\"3\"", json!({"a": "3"})),
            ("a=x=y,z", json!({"a": "x=y,z"})),
            (r"a\.b/c.d=x", json!({"a.b/c": {"d": "x"}})),
        ] {
            let mut got = json!({});
            set_from_flag(&mut got, flag).unwrap();
            assert_eq!(got, values, "{flag}");
        }
    }

    #[test]
    fn assignments_add_up_and_their_errors_show_no_value() {
        let mut values = json!({"a": {"b": 1}});
        set_from_flag(&mut values, "a.c=2").unwrap();
        assert_eq!(values, json!({"a": {"b": 1, "c": 2}}));
        for (flag, message) in [
            ("a.b.c=s3cret", "value \"a.b.c\""),
            ("a", "\"a\" has no value; write PATH=VALUE"),
            ("=s3cret", "value \"\""),
            (
                "p=\"s3cret",
                "the value of \"p\" begins with a quote, but is not a JSON string",
            ),
        ] {
            let error = set_from_flag(&mut values, flag).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn values_are_one_map() {
        assert_eq!(read(b"# nothing\n", "v.yaml"), Ok(json!({})));
        assert_eq!(read(b"---\na: 1\n---\n", "v.yaml"), Ok(json!({"a": 1})));
        for text in ["- a\n", "s3cret\n", "a: 1\n---\nb: 1\n"] {
            let error = read(text.as_bytes(), "v.yaml").unwrap_err();
            assert!(matches!(error, ValuesError::NotAMap { .. }), "{error}");
        }
        let error = read(b"a: {b: [1, 12345678901234567890]}\n", "v.yaml").unwrap_err();
        assert_eq!(
            error.to_string(),
            "v.yaml: a.b.1: a number of that size loses digits in the API server; write it in quotes"
        );
        let error = read(b"a: [s3cret\n", "v.yaml").unwrap_err();
        assert_eq!(error.to_string(), "v.yaml:1:4: cannot be read as YAML");
    }
}
