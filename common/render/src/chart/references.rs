//! Checks the references in the JSON schema of a chart's values (semantics 10.4). Helm reads every file and every address that a schema
//! refers to, on the machine and with the network of whoever renders the chart. Therefore a schema may refer only to itself and to the
//! meta-schemas that helm contains.

use serde_json::Value;

use common::entrance;
use common::text::shorten;

/// The keywords that refer to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// The keyword that names the language of a schema.
const LANGUAGE: &str = "$schema";
/// Prefixes of the languages that helm knows.
const LANGUAGES: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];
/// Number of characters of a reference that an error shows.
const SHOWN: usize = 200;

/// Why a schema is not passed to helm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaReferenceError {
    /// Its references cannot be determined.
    #[error("cannot be read as JSON")]
    NotJson,
    /// It refers to something outside of itself.
    #[error(
        "{keyword} {target:?} leaves the chart: copy what it names into the schema, and refer to it by {{\"$ref\": \"#/definitions/NAME\"}}"
    )]
    Leaves {
        /// The keyword.
        keyword: &'static str,
        /// The target of the reference.
        target: String,
    },
}

/// Returns whether helm reads a file of a chart as the schema of values. Backslashes separate paths as well, as in archives made on
/// Windows.
#[must_use]
pub fn is_schema(path: &str) -> bool {
    path.rsplit(['/', '\\']).next() == Some(super::SCHEMA)
}

/// Returns whether helm reads a file of a chart as another chart.
#[must_use]
pub fn is_chart(path: &str) -> bool {
    let mut parts = path.rsplit(['/', '\\']);
    let is_archive = parts.next().is_some_and(|name| name.ends_with(".tgz"));
    is_archive && parts.next() == Some("charts")
}

/// Refuses a schema that refers to something outside of itself.
///
/// # Errors
/// [`SchemaReferenceError`].
pub fn check(schema: &[u8]) -> Result<(), SchemaReferenceError> {
    let schema: Value = entrance::from_slice(schema).map_err(|_| SchemaReferenceError::NotJson)?;
    check_value(&schema)
}

fn check_value(value: &Value) -> Result<(), SchemaReferenceError> {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let Value::String(target) = value {
                    check_reference(key, target)?;
                }
                check_value(value)?;
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(check_value),
        _ => Ok(()),
    }
}

fn check_reference(key: &str, target: &str) -> Result<(), SchemaReferenceError> {
    let is_language = LANGUAGES.iter().any(|known| target.starts_with(known));
    let mut keywords = REFERENCES.into_iter().chain([LANGUAGE]);
    match keywords.find(|keyword| *keyword == key) {
        Some(keyword) if !is_language && (keyword == LANGUAGE || !target.starts_with('#')) => {
            Err(SchemaReferenceError::Leaves {
                keyword,
                target: shorten(target.to_owned(), SHOWN),
            })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_refers_to_itself_alone() {
        let is_refused = |schema: Value| check(schema.to_string().as_bytes()).is_err();
        for schema in [
            json!(true),
            json!({"$ref": "#/definitions/a", "definitions": {"a": {"type": "string"}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://a.example/values.json"}),
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$dynamicRef": "#a"}),
            json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
            json!({"properties": {"$ref": {"type": "string"}, "$schema": {"type": "string"}}}),
            json!({"description": "see https://a.example, file:///etc/passwd"}),
        ] {
            assert!(!is_refused(schema.clone()), "{schema}");
        }
        for target in [
            "http://169.254.169.254/latest/meta-data/",
            "https://a.example/schema.json#/definitions/a",
            "file:///var/run/secrets/kubernetes.io/serviceaccount/token",
            "definitions.json",
            "../other/values.schema.json",
            "/etc/passwd",
            "//a.example/schema.json",
            " #/definitions/a",
            "https://json-schema.org@a.example/",
            "HTTP://a.example/",
            "",
        ] {
            for schema in [
                json!({"$ref": target}),
                json!({"properties": {"a": {"items": [{"allOf": [{"$dynamicRef": target}]}]}}}),
                json!({"$defs": {"a": {"$recursiveRef": target}}}),
                json!({"$schema": target}),
            ] {
                assert!(is_refused(schema.clone()), "{schema}");
            }
        }
        assert!(is_refused(json!({"$schema": "#"})));
        assert_eq!(check(b"{\"$ref\":"), Err(SchemaReferenceError::NotJson));
        // An escape in the key is the same key.
        assert!(check(br#"{"\u0024ref":"file:///dev/zero"}"#).is_err());
    }

    #[test]
    fn files_are_what_helm_takes_them_for() {
        for path in [
            "values.schema.json",
            "charts/a/values.schema.json",
            r"web\values.schema.json",
        ] {
            assert!(is_schema(path), "{path}");
        }
        assert!(!is_schema("my-values.schema.json"));
        for path in ["charts/a.tgz", "charts/a/charts/b.tgz", r"web\charts\a.tgz"] {
            assert!(is_chart(path), "{path}");
        }
        for path in ["files/a.tgz", "charts/a/b.tgz", "a.tgz", "charts/a.tar.gz"] {
            assert!(!is_chart(path), "{path}");
        }
    }
}
