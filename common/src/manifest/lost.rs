//! Finds fields of a document that its type does not have. Deserialization drops them silently.

use serde_json::Value;

/// Returns the paths, below `path`, of fields that are in `written` but not in `read`. An empty value does not count as lost.
#[must_use]
pub fn find_lost_fields(written: &Value, read: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(written, read, path, &mut found);
    found
}

fn collect(written: &Value, read: &Value, path: &str, found: &mut Vec<String>) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written {
                let path = format!("{path}.{key}");
                match read.get(key) {
                    Some(read) => collect(value, read, &path, found),
                    None if is_empty(value) => {}
                    None => found.push(path),
                }
            }
        }
        (Value::Array(written), Value::Array(read)) => {
            for (i, (written, read)) in written.iter().zip(read).enumerate() {
                collect(written, read, &format!("{path}[{i}]"), found);
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(true) | Value::Number(_) => false,
    }
}
