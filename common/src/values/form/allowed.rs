//! Restrictions of a field in addition to its type: `enum` and `pattern` (semantics 10.3).

use std::collections::BTreeMap;

use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;

use crate::api::catalogue::{FieldType, FormField};

/// Maximum number of values in `enum`, and maximum length of a value in bytes.
const MAX_VALUES: usize = 64;
const MAX_VALUE: usize = 256;
/// Number of values that a message lists.
const LISTED: usize = 8;
/// Maximum size of a pattern, and of a compiled pattern, in bytes.
const MAX_PATTERN: usize = 256;
const MAX_COMPILED: usize = 64 << 10;
/// Maximum size of a text that is matched, in bytes. Together with the size of patterns, it limits the time of a validation.
const MAX_TEXT: usize = 1024;
/// Maximum number of different pairs of pattern and default in a catalogue. They are compiled when the catalogue is validated.
const MAX_PATTERNS: usize = 500;

/// The pairs of pattern and default of a catalogue that were checked already, each with its problem, if any.
#[derive(Debug, Default)]
pub struct CheckedPatterns<'a>(BTreeMap<(&'a str, Option<&'a str>), Option<String>>);

/// Returns why a field does not allow a value of its type, or `None` if it does. The message contains the allowed values, but not the given
/// one, which could be a secret.
#[must_use]
pub fn find_refusal(field: &FormField, value: &Value) -> Option<String> {
    if let Some(reason) = find_enum_refusal(&field.r#enum, value) {
        return Some(reason);
    }
    let (Some(pattern), Value::String(text)) = (&field.pattern, value) else {
        return None;
    };
    match compile(pattern) {
        Ok(regex) => find_mismatch(&regex, text),
        // The form is from an index that was never validated, so its intended restriction is unknown.
        Err(reason) => Some(format!("the pattern of the form cannot be used: {reason}")),
    }
}

fn find_mismatch(regex: &Regex, text: &str) -> Option<String> {
    if text.len() > MAX_TEXT {
        return Some(format!(
            "must have {MAX_TEXT} bytes at most: the form has a pattern for it"
        ));
    }
    (!regex.is_match(text)).then(|| format!("must match the pattern {regex}"))
}

fn find_enum_refusal(allowed: &[Value], value: &Value) -> Option<String> {
    let is_allowed = allowed.is_empty() || is_one_of(allowed, value);
    (!is_allowed).then(|| format!("must be one of {}", list_values(allowed, LISTED)))
}

/// Returns whether a value is one of these. 1 and 1.0 are equal.
#[must_use]
pub fn is_one_of(allowed: &[Value], value: &Value) -> bool {
    let is_same =
        |one: &Value| one == value || one.as_f64().is_some_and(|it| value.as_f64() == Some(it));
    allowed.iter().any(is_same)
}

/// Lists at most `most` values for a message: `small, medium, \"very large\"`.
#[must_use]
pub fn list_values(values: &[Value], most: usize) -> String {
    let text = |value: &Value| match value {
        Value::String(text) if is_word(text) => text.clone(),
        other => other.to_string(),
    };
    let more = if values.len() > most { ", …" } else { "" };
    let texts: Vec<String> = values.iter().take(most).map(text).collect();
    texts.join(", ") + more
}

/// Returns whether a text needs no quotes in a list.
fn is_word(text: &str) -> bool {
    let is_part = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, ',' | '"');
    !text.is_empty() && text.chars().all(is_part)
}

/// Returns the problems of `enum` and `pattern`, and of the default with them if they are valid.
pub(super) fn find_problems<'a>(
    field: &'a FormField,
    patterns: &mut CheckedPatterns<'a>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let allowed = field.r#enum.as_slice();
    if allowed.len() > MAX_VALUES {
        problems.push(format!("enum: there are more than {MAX_VALUES} values"));
    }
    let mistake = allowed
        .iter()
        .find_map(|value| super::type_mistake(field.r#type, value));
    problems.extend(mistake.map(|mistake| format!("enum: {mistake}")));
    let is_long = |value: &Value| value.as_str().is_some_and(|text| text.len() > MAX_VALUE);
    if allowed.iter().any(is_long) {
        problems.push(format!("enum: a value has more than {MAX_VALUE} bytes"));
    }
    let default = field.default.as_ref();
    let default = default.filter(|it| super::type_mistake(field.r#type, it).is_none());
    if problems.is_empty() {
        let refusal = default.and_then(|default| find_enum_refusal(allowed, default));
        problems.extend(refusal.map(|refusal| format!("default: {refusal}")));
    }
    if let Some(pattern) = &field.pattern {
        problems.extend(match field.r#type {
            FieldType::Number | FieldType::Boolean => {
                Some("pattern: only text has a pattern".to_owned())
            }
            FieldType::Text | FieldType::String | FieldType::TextArea => {
                patterns.find_problem(pattern, default.and_then(Value::as_str))
            }
        });
    }
    problems
}

impl<'a> CheckedPatterns<'a> {
    /// Returns why a pattern cannot be used, or why its default does not match it.
    fn find_problem(&mut self, pattern: &'a str, default: Option<&'a str>) -> Option<String> {
        let key = (pattern, default);
        if self.0.len() >= MAX_PATTERNS && !self.0.contains_key(&key) {
            return Some(format!(
                "pattern: the catalogue has more than {MAX_PATTERNS} different ones"
            ));
        }
        let judge = || match compile(pattern) {
            Ok(regex) => {
                let mismatch = default.and_then(|default| find_mismatch(&regex, default));
                mismatch.map(|reason| format!("default: {reason}"))
            }
            Err(reason) => Some(format!("pattern: {reason}")),
        };
        self.0.entry(key).or_insert_with(judge).clone()
    }
}

/// Compiles a pattern. The syntax is RE2 without Unicode classes, as in template functions.
fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("it has more than {MAX_PATTERN} bytes"));
    }
    let regex = RegexBuilder::new(pattern).size_limit(MAX_COMPILED).build();
    regex.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(fields: Value) -> FormField {
        let mut field = json!({"internalName": "a"});
        for (key, value) in fields.as_object().unwrap() {
            field[key] = value.clone();
        }
        serde_json::from_value(field).unwrap()
    }

    #[test]
    fn values_are_of_the_enum_and_match_the_pattern() {
        let sizes = json!({"enum": ["small", "very large"]});
        let counts = json!({"type": "number", "enum": [1, 3, 5]});
        let host = json!({"pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"});
        let both = json!({"enum": ["a1", "b"], "pattern": "[0-9]"});
        let of_sizes = "must be one of small, \"very large\"";
        let of_host = r"must match the pattern ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
        for (fields, value, expected) in [
            (&sizes, json!("small"), None),
            (&sizes, json!("very large"), None),
            (&sizes, json!("s3cret"), Some(of_sizes)),
            (&sizes, json!("Small"), Some(of_sizes)),
            (&sizes, json!(""), Some(of_sizes)),
            (&counts, json!(3), None),
            (&counts, json!(3.0), None),
            (&counts, json!(4), Some("must be one of 1, 3, 5")),
            (&host, json!("web-1"), None),
            (&host, json!("s3cret."), Some(of_host)),
            (&host, json!("web\n"), Some(of_host)),
            (&both, json!("a1"), None),
            (&both, json!("b"), Some("must match the pattern [0-9]")),
            (&both, json!("c1"), Some("must be one of a1, b")),
            (
                &json!({"pattern": "^[a-z]+$"}),
                json!("x".repeat(1025)),
                Some("must have 1024 bytes at most: the form has a pattern for it"),
            ),
            (
                &json!({"pattern": "^("}),
                json!("x"),
                Some(
                    "the pattern of the form cannot be used: found open group without closing ')'",
                ),
            ),
            // Anchors are the author's business, as in a definition of Kubernetes.
            (&json!({"pattern": "b"}), json!("abc"), None),
        ] {
            let refusal = find_refusal(&field(fields.clone()), &value);
            assert_eq!(refusal.as_deref(), expected, "{fields} {value}");
        }
        let many: Vec<Value> = (0..100).map(Value::from).collect();
        let many = field(json!({"type": "number", "enum": many}));
        let expected = "must be one of 0, 1, 2, 3, 4, 5, 6, 7, …";
        assert_eq!(find_refusal(&many, &json!(-1)).as_deref(), Some(expected));
    }

    #[test]
    fn enums_and_patterns_are_judged_with_the_catalogue() {
        let problems =
            |fields: &Value| find_problems(&field(fields.clone()), &mut CheckedPatterns::default());
        let many: Vec<Value> = (0..65).map(Value::from).collect();
        for (fields, expected) in [
            (
                json!({"enum": ["a", "b"], "default": "b", "pattern": "^[ab]$"}),
                &[][..],
            ),
            (json!({"enum": ["a"], "default": null}), &[]),
            (
                json!({"type": "boolean", "enum": [true], "default": true}),
                &[],
            ),
            (
                json!({"enum": ["a", "b"], "default": "c"}),
                &["default: must be one of a, b"],
            ),
            (
                json!({"pattern": "^[ab]$", "default": "c"}),
                &["default: must match the pattern ^[ab]$"],
            ),
            (
                json!({"enum": ["a", 1]}),
                &["enum: text is expected, this is a number: put it in quotes"],
            ),
            (
                json!({"enum": ["a", {"b": 1}]}),
                &["enum: text is expected, this is a map"],
            ),
            (
                json!({"type": "number", "enum": many}),
                &["enum: there are more than 64 values"],
            ),
            (
                json!({"enum": ["x".repeat(257)]}),
                &["enum: a value has more than 256 bytes"],
            ),
            (
                json!({"type": "number", "pattern": "1"}),
                &["pattern: only text has a pattern"],
            ),
            // A default is not judged by a pattern that cannot be used.
            (
                json!({"pattern": "^(", "default": "c"}),
                &["pattern: found open group without closing ')'"],
            ),
            (
                json!({"pattern": "x".repeat(257)}),
                &["pattern: it has more than 256 bytes"],
            ),
        ] {
            assert_eq!(problems(&fields), expected, "{fields}");
        }
    }

    /// The names of hosts take the largest patterns that are in use; a repetition of a repetition is refused.
    #[test]
    fn patterns_are_bounded() {
        let label = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";
        assert!(compile(&format!(r"^{label}(\.{label})*$")).is_ok());
        assert!(compile("(a{1000}){1000}").is_err());
        assert!(compile(&"(".repeat(200)).is_err());
        let texts: Vec<String> = (0..MAX_PATTERNS).map(|i| format!("^a{i}$")).collect();
        let mut patterns = CheckedPatterns::default();
        let mut problem = |pattern, default| patterns.find_problem(pattern, default);
        for (i, text) in texts.iter().enumerate() {
            let expected = (i % 2 == 1).then(|| format!("default: must match the pattern {text}"));
            let default = text.get(1..text.len() - 1 - i % 2);
            assert_eq!(problem(text, default), expected);
        }
        let expected = Some("pattern: the catalogue has more than 500 different ones".to_owned());
        assert_eq!(problem("^b$", None), expected);
        assert_eq!(problem("^a0$", None), expected);
        assert_eq!(problem("^a0$", Some("a0")), None);
    }
}
