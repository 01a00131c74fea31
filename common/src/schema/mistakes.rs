//! Finds all reasons why a document cannot be read as one of our objects, with the paths of the fields. serde reports only the first,
//! without a path.

use kube::CustomResourceExt;
use serde_json::Value;

use crate::schema;

/// Maximum number of mistakes that are listed.
const NAMED: usize = 5;

/// A mistake in a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentMistake {
    /// Path of the field.
    pub path: String,
    /// What is wrong, including the path.
    pub text: String,
}

/// Returns the mistakes of one of our objects, according to the schema by which the API server checks it.
#[must_use]
pub fn find_mistakes<K: CustomResourceExt>(document: &Value) -> Vec<DocumentMistake> {
    let found = schema::find_problems(&schema_of::<K>(), document);
    let mistake = |(path, message)| DocumentMistake {
        text: format!("{path} {message}"),
        path,
    };
    found.into_iter().map(mistake).collect()
}

/// Returns a mistake for each field below `path` that is in `written` but not in `read`: deserialization dropped it silently, because our
/// type does not have it. An empty value does not count.
#[must_use]
pub fn find_unknown_fields(written: &Value, read: &Value, path: &str) -> Vec<DocumentMistake> {
    let mut paths = Vec::new();
    collect_dropped(written, read, path, &mut paths);
    let mistake = |path| DocumentMistake {
        text: format!("unknown field {path}; remove it or correct its name"),
        path,
    };
    paths.into_iter().map(mistake).collect()
}

/// Sorts mistakes by line. Returns the line of the first one, and a text of all mistakes, which names the other lines. `line` returns the
/// line of a path.
#[must_use]
pub fn describe_by_line(
    mistakes: &[DocumentMistake],
    line: impl Fn(&str) -> usize,
) -> (usize, String) {
    let lines = mistakes.iter().map(|mistake| line(&mistake.path));
    let mut found: Vec<(usize, &DocumentMistake)> = lines.zip(mistakes).collect();
    found.sort_by_key(|(line, _)| *line);
    let first = found.first().map_or(1, |(line, _)| *line);
    let mut texts = Vec::new();
    let mut last = first;
    for (line, mistake) in found.iter().take(NAMED) {
        texts.push(match *line == last {
            true => mistake.text.clone(),
            false => format!("line {line}: {}", mistake.text),
        });
        last = *line;
    }
    if found.len() > NAMED {
        texts.push(format!("and {} more", found.len() - NAMED));
    }
    (first, texts.join("; "))
}

/// Returns all mistakes, including unknown fields, as pairs of path and message.
#[must_use]
pub fn find_strict_mistakes<K: CustomResourceExt>(document: &Value) -> Vec<(String, String)> {
    schema::find_strict_problems(&schema_of::<K>(), document)
}

/// Returns the schema of one of our definitions. A definition can always be written as JSON.
fn schema_of<K: CustomResourceExt>() -> Value {
    let mut definition = serde_json::to_value(K::crd()).unwrap_or_default();
    let schema = definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema");
    schema.map(Value::take).unwrap_or_default()
}

fn collect_dropped(written: &Value, read: &Value, path: &str, found: &mut Vec<String>) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written {
                let path = format!("{path}.{key}");
                match read.get(key) {
                    Some(read) => collect_dropped(value, read, &path, found),
                    None if is_empty(value) => {}
                    None => found.push(path),
                }
            }
        }
        (Value::Array(written), Value::Array(read)) => {
            for (i, (written, read)) in written.iter().zip(read).enumerate() {
                collect_dropped(written, read, &format!("{path}[{i}]"), found);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::catalogue::AddonCatalogue;
    use crate::api::names;

    #[test]
    fn every_mistake_has_its_path() {
        let at = "spec.addons[0].versions[0]";
        let source = json!({"url": {"manifest": "a"}});
        for (version, expected) in [
            (json!({"version": "1", "source": source}), None),
            (
                json!({"version": 1.2, "source": source}),
                Some(format!(
                    "{at}.version must be a string, not a number: put it in quotes"
                )),
            ),
            (
                json!({"version": "1", "source": "a"}),
                Some(format!("{at}.source must be an object, not a string")),
            ),
            (
                json!({"version": "1", "source": source, "template": {"method": "kustomize"}}),
                Some(format!("{at}.template.method must be one of")),
            ),
            (
                json!({"version": "1"}),
                Some(format!("{at}.source is required")),
            ),
        ] {
            let found = find_mistakes::<AddonCatalogue>(&json!({
                "apiVersion": names::API_VERSION,
                "kind": "AddonCatalogue",
                "metadata": {"name": "c"},
                "spec": {"addons": [{"name": "a", "versions": [version]}]},
            }));
            match expected {
                Some(expected) => assert!(
                    matches!(found.as_slice(), [one] if one.text.starts_with(&expected)),
                    "{expected}: {found:?}"
                ),
                None => assert_eq!(found, []),
            }
        }
    }
}
