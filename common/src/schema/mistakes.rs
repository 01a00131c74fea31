//! Finds all reasons why a document cannot be read as one of our objects, with the paths of the fields. serde reports only the first,
//! without a path.

use kube::CustomResourceExt;
use serde_json::Value;

use super::check::{SchemaChecker, SchemaFinding};
use crate::nearest::did_you_mean;
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

/// Returns the mistakes of one of our objects, according to the schema by which the API server checks it, and its unknown fields.
#[must_use]
pub fn find_mistakes<K: CustomResourceExt>(document: &Value) -> Vec<DocumentMistake> {
    let findings = SchemaChecker::check_root(&schema_of::<K>(), document).into_iter();
    let mistakes = findings.filter_map(|finding| match finding {
        SchemaFinding::Problem { path, message } => Some(DocumentMistake {
            text: format!("{path} {message}"),
            path,
        }),
        SchemaFinding::Unknown { path, near } => Some(describe_unknown(path, near)),
        SchemaFinding::Note(_) => None,
    });
    mistakes.collect()
}

/// Returns a mistake for each unknown field of a specification: our type does not have it, so its value would be lost.
#[must_use]
pub fn find_unknown_fields<K: CustomResourceExt>(document: &Value) -> Vec<DocumentMistake> {
    let findings = SchemaChecker::check_root(&schema_of::<K>(), document).into_iter();
    let unknown = findings.filter_map(|finding| match finding {
        SchemaFinding::Unknown { path, near } if path.starts_with("spec.") => {
            Some(describe_unknown(path, near))
        }
        _ => None,
    });
    unknown.collect()
}

/// `unknown field spec.valus; did you mean values?`
fn describe_unknown(path: String, near: Option<String>) -> DocumentMistake {
    let way_out = match near {
        Some(_) => did_you_mean(near.as_deref()),
        None => "; remove it or correct its name".to_owned(),
    };
    DocumentMistake {
        text: format!("unknown field {path}{way_out}"),
        path,
    }
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
