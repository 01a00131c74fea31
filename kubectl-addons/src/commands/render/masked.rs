//! Masks the values of Secrets in rendered manifests. Names and keys stay.

use common::values;
use common::values::mask::MASK;
use serde_json::{Map, Value};

/// The annotation in which `kubectl apply` repeats the whole Secret.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Masks an object if it is a Secret, or a List that holds some.
pub fn mask_object(mut object: Value) -> Value {
    mask_secrets(&mut object);
    object
}

/// Masks a rendered text. Documents without Secrets are unchanged. A Secret is formatted again, because YAML has many ways to write its
/// values.
pub fn mask_text(raw: &str) -> String {
    split_documents(raw)
        .into_iter()
        .map(mask_document)
        .collect()
}

fn mask_secrets(object: &mut Value) -> bool {
    let kind = object.get("kind").and_then(Value::as_str);
    if kind == Some("Secret") && object.get("apiVersion").and_then(Value::as_str) == Some("v1") {
        for field in ["data", "stringData"] {
            match object.get_mut(field) {
                Some(Value::Object(values)) => mask_values(values),
                Some(value) if !value.is_null() => *value = Value::from(MASK),
                _ => {}
            }
        }
        if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations")
            && let Some(applied) = annotations.get_mut(LAST_APPLIED)
        {
            *applied = Value::from(MASK);
        }
        return true;
    }
    let Some(Value::Array(items)) = object.get_mut("items") else {
        return false;
    };
    items
        .iter_mut()
        .filter_map(|item| mask_secrets(item).then_some(()))
        .count()
        > 0
}

fn mask_values(values: &mut Map<String, Value>) {
    for value in values.values_mut() {
        *value = Value::from(MASK);
    }
}

/// Splits a text at its `---` lines, which stay with the document that follows.
fn split_documents(raw: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in raw.split_inclusive('\n') {
        if line.starts_with("---") && at > start {
            found.extend(raw.get(start..at));
            start = at;
        }
        at += line.len();
    }
    found.extend(raw.get(start..));
    found
}

fn mask_document(raw: &str) -> String {
    if !raw.contains("Secret") {
        return raw.to_owned();
    }
    match values::read(raw.as_bytes(), "") {
        Ok(mut object) => match mask_secrets(&mut object) {
            true => format!("---\n{}", to_yaml(&object)),
            false => raw.to_owned(),
        },
        // The values of a Secret that cannot be parsed cannot be found either.
        Err(_) if names_secret(raw) => "---\n# a Secret that is not valid YAML\n".to_owned(),
        Err(_) => raw.to_owned(),
    }
}

fn to_yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap_or_else(|_| object.to_string() + "\n")
}

/// Whether a line of a text that cannot be parsed says `kind: Secret`.
fn names_secret(raw: &str) -> bool {
    raw.lines().any(|line| {
        let line: String = line
            .chars()
            .filter(|one| !"\"' \t-".contains(*one))
            .collect();
        line.contains("kind:Secret")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_secrets_are_masked_and_nothing_else() {
        let secret = |data, text, applied| {
            json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "abc", "annotations": {LAST_APPLIED: applied, "team": "abc"}},
                "data": {"x": data}, "stringData": {"password": text},
            })
        };
        let shown = secret("***", "***", "***");
        let plain = secret("YWJj", "abc", "{abc}");
        assert_eq!(mask_object(plain.clone()), shown);
        let list = |item: &Value| json!({"apiVersion": "v1", "kind": "List", "items": [item]});
        assert_eq!(mask_object(list(&plain)), list(&shown));
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "abc"}});
        assert_eq!(mask_object(other.clone()), other);
    }

    #[test]
    fn a_text_stays_but_for_its_secrets() {
        let map = "# a comment\napiVersion: v1\nkind: ConfigMap\ndata: {about: Secret}\n";
        let secret = "apiVersion: v1\nkind: Secret\nstringData:\n  p: |\n    abc\n    def\n";
        let hidden = "---\napiVersion: v1\nkind: Secret\nstringData:\n  p: '***'\n";
        let broken = "---\nkind: \"Secret\"\ndata:\n x: abc\n  y: def\n";
        let said = mask_text(&format!("{map}---\n{secret}{broken}--- # next\n{map}"));
        let said = said.replace("\"***\"", "'***'");
        let none = "---\n# a Secret that is not valid YAML\n";
        assert_eq!(said, format!("{map}{hidden}{none}--- # next\n{map}"));
        assert_eq!(mask_text(map), map);
    }
}
