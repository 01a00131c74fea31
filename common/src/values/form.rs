//! Forms: fields at dotted paths of the values, with types and defaults (semantics 9 and 10).

mod allowed;
mod unknown;

use serde::Serialize;
use serde_json::{Map, Value};

use super::path::ValuePath;
use crate::api::catalogue::{FieldType, FormField};
use crate::manifest::parse::type_of;

pub use allowed::{CheckedPatterns, find_refusal, is_one_of, list_values};
pub use unknown::find_unknown;

/// A problem of values or of a form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FormViolation {
    /// Dotted path of the field, as the form writes it.
    pub path: String,
    /// What is wrong. It does not contain the value, which could be a secret.
    pub message: String,
}

/// Checks values against a form: types, restrictions of fields (`enum`, `pattern`), and with `required` also that required fields have a
/// value.
///
/// The values must be merged. Set `required` only for installations without `valuesFrom`, because a Secret may contain the rest (semantics
/// 10.3). Null and, for required fields, empty text count as no value. Keys that the form does not contain are not checked here; see
/// [`find_unknown()`].
#[must_use]
pub fn check_values(form: &[FormField], values: &Value, required: bool) -> Vec<FormViolation> {
    form.iter()
        .filter_map(|field| {
            let path = ValuePath::parse(&field.internal_name).ok()?;
            let value = path.get(values).filter(|value| !value.is_null());
            let mistake = value.and_then(|value| type_mistake(field.r#type, value));
            let is_missing = required && is_missing(field, value);
            let message = mistake
                .or_else(|| is_missing.then(|| "a value is required".to_owned()))
                .or_else(|| find_refusal(field, value?))?;
            let display = field.display_name.trim();
            let message = match display {
                "" => message,
                name => format!("{message} ({name})"),
            };
            Some(FormViolation {
                path: field.internal_name.clone(),
                message,
            })
        })
        .collect()
}

/// Returns the required fields without a value, if all values are known; see [`check_values`].
#[must_use]
pub fn missing_fields<'a>(form: &'a [FormField], values: &Value) -> Vec<&'a FormField> {
    let is_missing = |field: &&FormField| {
        ValuePath::parse(&field.internal_name).is_ok_and(|path| is_missing(field, path.get(values)))
    };
    form.iter().filter(is_missing).collect()
}

/// Returns why a value does not have this type, or `None` if it does. Lists and maps never do, and nothing is converted.
#[must_use]
pub fn type_mistake(kind: FieldType, value: &Value) -> Option<String> {
    let is_fit = match kind {
        FieldType::Text | FieldType::String | FieldType::TextArea => value.is_string(),
        FieldType::Number => value.is_number(),
        FieldType::Boolean => value.is_boolean(),
    };
    if is_fit {
        return None;
    }
    let (wanted, hint) = match kind {
        FieldType::Number => ("a number", ""),
        FieldType::Boolean => ("true or false", ""),
        _ if value.is_array() || value.is_object() => ("text", ""),
        _ => ("text", ": put it in quotes"),
    };
    Some(format!(
        "{wanted} is expected, this is {}{hint}",
        type_of(value)
    ))
}

/// Checks a form: paths are valid and not nested in each other, `enum` and `pattern` are usable, and defaults have the right type and are
/// allowed. `patterns` contains the patterns of the whole catalogue.
#[must_use]
pub fn check_form<'a>(
    form: &'a [FormField],
    patterns: &mut CheckedPatterns<'a>,
) -> Vec<FormViolation> {
    let mut violations = Vec::new();
    let mut known: Vec<(ValuePath, &str)> = Vec::new();
    for field in form {
        let mut report = |message: String| {
            violations.push(FormViolation {
                path: field.internal_name.clone(),
                message,
            });
        };
        match ValuePath::parse(&field.internal_name) {
            Err(error) => report(error.to_string()),
            Ok(path) => {
                let clash = known.iter().find(|(other, _)| {
                    path.keys().starts_with(other.keys()) || other.keys().starts_with(path.keys())
                });
                match clash {
                    Some((other, _)) if *other == path => report("this field occurs twice".into()),
                    Some((_, other)) => {
                        report(format!("one of this and {other} lies inside of the other"))
                    }
                    None => known.push((path, &field.internal_name)),
                }
            }
        }
        let default = field.default.as_ref().filter(|default| !default.is_null());
        if let Some(message) = default.and_then(|default| type_mistake(field.r#type, default)) {
            report(format!("default: {message}"));
        }
        allowed::find_problems(field, patterns)
            .into_iter()
            .for_each(report);
    }
    violations
}

/// Returns the defaults of a form as values, the layer [`super::merge::Layer::Form`]. Fields that [`check_form`] refuses are left out.
#[must_use]
pub fn defaults(form: &[FormField]) -> Value {
    let mut values = Value::Object(Map::new());
    for field in form {
        if let Some(default) = &field.default
            && !default.is_null()
            && let Ok(path) = ValuePath::parse(&field.internal_name)
        {
            // This fails only for a path through another field: the first value stays.
            let _ = path.set(&mut values, default.clone());
        }
    }
    values
}

fn is_missing(field: &FormField, value: Option<&Value>) -> bool {
    field.required && value.is_none_or(|value| value.is_null() || value == "")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(fields: Value) -> Vec<FormField> {
        serde_json::from_value(fields).unwrap()
    }

    fn messages(violations: Vec<FormViolation>) -> Vec<String> {
        violations
            .into_iter()
            .map(|violation| format!("{}: {}", violation.path, violation.message))
            .collect()
    }

    fn example() -> Vec<FormField> {
        form(json!([
            {"displayName": "Replicas", "internalName": "spec.replicas", "type": "number", "required": true, "default": 1},
            {"internalName": "spec.debug", "type": "boolean"},
            {"internalName": "host\\.name", "type": "text", "required": true},
            {"internalName": "motd", "type": "text-area"},
            {"internalName": "version", "type": "string"},
        ]))
    }

    #[test]
    fn values_are_checked_by_type() {
        let good = json!({"spec": {"replicas": 1.5, "debug": false}, "host.name": "h", "motd": "a\nb", "more": [1]});
        assert_eq!(check_values(&example(), &good, true), []);
        let bad = json!({"spec": {"replicas": "3", "debug": "yes"}, "host.name": true, "motd": [], "version": 1.1});
        assert_eq!(
            messages(check_values(&example(), &bad, true)),
            [
                "spec.replicas: a number is expected, this is text (Replicas)",
                "spec.debug: true or false is expected, this is text",
                "host\\.name: text is expected, this is a boolean: put it in quotes",
                "motd: text is expected, this is a list",
                "version: text is expected, this is a number: put it in quotes",
            ]
        );
    }

    #[test]
    fn required_fields_are_asked_for_only_where_the_caller_wants() {
        let values = json!({"spec": {"replicas": null}, "host.name": ""});
        assert_eq!(
            messages(check_values(&example(), &values, true)),
            [
                "spec.replicas: a value is required (Replicas)",
                "host\\.name: a value is required"
            ]
        );
        assert_eq!(check_values(&example(), &values, false), []);
        assert_eq!(check_values(&example(), &Value::Null, true).len(), 2);
    }

    /// A wrong type and a missing value are said first.
    #[test]
    fn values_are_allowed_by_their_fields() {
        let fields = form(json!([
            {"displayName": "Size", "internalName": "size", "enum": ["s", "m"], "required": true},
            {"internalName": "host", "pattern": "^[a-z]+$"},
        ]));
        for (values, expected) in [
            (json!({"size": "m", "host": "web"}), &[][..]),
            (json!({"size": "m", "host": null}), &[]),
            (
                json!({"size": "s3cret", "host": "s3cret"}),
                &[
                    "size: must be one of s, m (Size)",
                    "host: must match the pattern ^[a-z]+$",
                ],
            ),
            (
                json!({"size": 1, "host": ""}),
                &[
                    "size: text is expected, this is a number: put it in quotes (Size)",
                    "host: must match the pattern ^[a-z]+$",
                ],
            ),
            (json!({"size": ""}), &["size: a value is required (Size)"]),
        ] {
            assert_eq!(
                messages(check_values(&fields, &values, true)),
                expected,
                "{values}"
            );
        }
    }

    #[test]
    fn defaults_are_a_layer() {
        let fields = form(json!([
            {"internalName": "a.b", "default": "x"},
            {"internalName": "a.c", "type": "number", "default": 2},
            {"internalName": "a.b.d", "default": "lost"},
            {"internalName": "n", "default": null},
            {"internalName": "none"},
        ]));
        assert_eq!(defaults(&fields), json!({"a": {"b": "x", "c": 2}}));
        assert_eq!(check_values(&example(), &defaults(&example()), false), []);
    }

    #[test]
    fn forms_are_checked_too() {
        assert_eq!(check_form(&example(), &mut CheckedPatterns::default()), []);
        let fields = form(json!([
            {"internalName": "a.b", "type": "number", "default": "1"},
            {"internalName": "a.b"},
            {"internalName": "a"},
            {"internalName": "a..b"},
            {"internalName": "c", "enum": ["x"], "pattern": "^(", "default": 1},
        ]));
        assert_eq!(
            messages(check_form(&fields, &mut CheckedPatterns::default())),
            [
                "a.b: default: a number is expected, this is text",
                "a.b: this field occurs twice",
                "a: one of this and a.b lies inside of the other",
                "a..b: a key of the path is empty",
                "c: default: text is expected, this is a number: put it in quotes",
                "c: pattern: found open group without closing ')'",
            ]
        );
    }
}
