//! Values of an installation: layers and how they merge, forms, dotted paths, and masking (semantics 9 and 10).
//!
//! [`crate::manifest::digest::digest`] computes their digest. Errors never contain a value, because it could be a secret.

pub mod defaulted;
pub mod form;
pub mod layers;
pub mod mask;
pub mod merge;
pub mod path;
pub mod secret;
pub mod sensitive;
pub mod set;

use serde_json::{Map, Number, Value};

use crate::manifest::FilePosition;
use crate::manifest::yaml::{YamlOptions, YamlProblem, documents};
use set::AssignmentError;

/// Why values cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// The file is not YAML.
    #[error("{place}: cannot be read as YAML")]
    Yaml {
        /// Position of the problem.
        place: FilePosition,
        /// What is wrong.
        #[source]
        problem: YamlProblem,
    },
    /// The file contains something other than one map.
    #[error("{place}: values are one map, as in `replicas: 3`")]
    NotAMap {
        /// Position of the value.
        place: FilePosition,
    },
    /// The API server would change a number.
    #[error(
        "{file}: {path}: a number of that size loses digits in the API server; write it in quotes"
    )]
    TooManyDigits {
        /// The file, or the key of a Secret.
        file: String,
        /// The path of the value.
        path: String,
    },
    /// An assignment has no `=`.
    #[error("{path:?} has no value; write PATH=VALUE")]
    NoValue {
        /// The text of the assignment.
        path: String,
    },
    /// An assignment cannot be parsed or applied.
    #[error("path {path:?}")]
    Set {
        /// The path.
        path: String,
        /// What is wrong.
        #[source]
        problem: AssignmentError,
    },
}

/// Reads the values of a file or of a key of a Secret: one YAML map. Empty input is an empty map.
///
/// # Errors
/// [`ValuesError`]; `file` is the file name in its positions.
pub fn read(bytes: &[u8], file: &str) -> Result<Value, ValuesError> {
    let place = |line, column| FilePosition {
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
    if find_changed_number(&values, &mut path) {
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

/// Returns whether the API server stores a number unchanged. It stores a whole number beyond 64 bits with sign as a floating point number,
/// which has fewer digits.
fn is_stored_exactly(number: &Number) -> bool {
    !number.is_u64() || number.is_i64()
}

/// Looks for the first number that the API server would change. If it returns true, `path` is the path of that number.
fn find_changed_number(value: &Value, path: &mut Vec<String>) -> bool {
    match value {
        Value::Number(number) => !is_stored_exactly(number),
        Value::Object(map) => map.iter().any(|(key, value)| {
            path.push(key.clone());
            find_changed_number(value, path) || path.pop().is_none()
        }),
        Value::Array(items) => items.iter().enumerate().any(|(index, value)| {
            path.push(index.to_string());
            find_changed_number(value, path) || path.pop().is_none()
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
