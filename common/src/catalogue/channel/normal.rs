//! Normalises an index, so that the reader sees plain fields: names are spelt as kops writes them, nulls in maps are dropped, numbers
//! and booleans become text, because kops' loader converts them for its text fields.

use serde_json::{Map, Value};

/// All fields of the format.
const FIELDS: [&str; 21] = [
    "kind",
    "apiVersion",
    "metadata",
    "spec",
    "addons",
    "name",
    "namespace",
    "selector",
    "manifest",
    "manifestHash",
    "kubernetesVersion",
    "id",
    "needsRollingUpdate",
    NEEDS_PKI,
    "version",
    "prune",
    "kinds",
    "group",
    "namespaces",
    "labelSelector",
    "fieldSelector",
];
/// The only field that is not text, a list or a map.
const NEEDS_PKI: &str = "needsPKI";

/// Whether the root of a document is an index. See [`super::is_index`].
pub(super) fn is_index(root: &Map<String, Value>) -> bool {
    let field = |name: &str| {
        let mut fields = root.iter();
        fields
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map_or(&Value::Null, |(_, value)| value)
    };
    field("kind") == "Addons" && matches!(field("apiVersion").as_str(), None | Some(""))
}

/// Normalises the root. A warning names each field that was misspelt.
pub(super) fn normalize(
    root: Map<String, Value>,
    warnings: &mut Vec<String>,
) -> Map<String, Value> {
    normalize_fields(root, "", warnings)
}

fn normalize_fields(
    map: Map<String, Value>,
    path: &str,
    warnings: &mut Vec<String>,
) -> Map<String, Value> {
    let mut normal = Map::new();
    for (key, value) in map {
        if value.is_null() {
            continue;
        }
        let name = field_name(&key, path);
        let at = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        if name != key {
            warnings.push(format!("{at} is read as {name}: write it so"));
        }
        let value = match value {
            Value::Bool(_) if name == NEEDS_PKI => value,
            value => normalize_value(value, &at, warnings),
        };
        // If both spellings occur, the correct one counts.
        if name == key || !normal.contains_key(name) {
            normal.insert(name.to_owned(), value);
        }
    }
    normal
}

fn normalize_value(value: Value, path: &str, warnings: &mut Vec<String>) -> Value {
    match value {
        Value::Object(map) => Value::Object(normalize_fields(map, path, warnings)),
        Value::Array(items) => {
            let items = items.into_iter().enumerate();
            let items =
                items.map(|(i, item)| normalize_value(item, &format!("{path}[{i}]"), warnings));
            Value::Array(items.collect())
        }
        Value::Number(_) | Value::Bool(_) => Value::String(value.to_string()),
        Value::String(_) | Value::Null => value,
    }
}

/// Returns the correct spelling of `key`. The keys of a selector are labels and stay unchanged.
fn field_name<'a>(key: &'a str, path: &str) -> &'a str {
    let parent = path.rsplit('.').next().unwrap_or(path);
    if parent.eq_ignore_ascii_case("selector") {
        return key;
    }
    FIELDS
        .into_iter()
        .find(|name| name.eq_ignore_ascii_case(key))
        .unwrap_or(key)
}
