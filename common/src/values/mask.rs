//! Hides values of Secrets (`valuesFrom`) in output for people: a template may have written them into any object.
//!
//! A scalar of a Secret is hidden where it is a whole value, and where it is part of a longer text (a URL, a configuration
//! file), also line by line, as base64, and escaped as `quote` and `toJson` do it. Values that a template changed in other ways
//! cannot be recognised.

use std::collections::HashSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The text in place of a hidden value.
pub const MASK: &str = "***";
/// Shortest value, in characters, that is hidden where it is a whole value: shorter ones are too common.
const MIN_WHOLE: usize = 4;
/// Shortest value that is hidden inside other texts.
const MIN_PART: usize = 6;
/// With more values than these, whole texts are hidden instead of being searched.
const MAX_PARTS: usize = 1000;

/// The scalars of Secrets. [`fmt::Debug`] does not show them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Mask {
    whole: HashSet<String>,
    /// The longest first, so that none is left over from inside another.
    parts: Vec<String>,
}

impl Mask {
    /// Hides every scalar of these values.
    #[must_use]
    pub fn of<'a>(secrets: impl Iterator<Item = &'a Value>) -> Self {
        let mut mask = Self::default();
        for values in secrets {
            mask.collect(values);
        }
        let parts: HashSet<String> = mask.parts.drain(..).collect();
        mask.parts = parts.into_iter().collect();
        mask.parts
            .sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        mask
    }

    /// Whether nothing is hidden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// The texts that are hidden wherever they occur, the longest first.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// A text without the hidden values.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        if self.whole.contains(text) || self.parts.len() > MAX_PARTS {
            return MASK.to_owned();
        }
        let mut shown = text.to_owned();
        for part in &self.parts {
            if shown.contains(part.as_str()) {
                shown = shown.replace(part.as_str(), MASK);
            }
        }
        shown
    }

    /// A value without the hidden values; keys stay.
    #[must_use]
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Number(number) if self.whole.contains(&number.to_string()) => {
                Value::String(MASK.to_owned())
            }
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(key, value)| (key.clone(), self.value(value)))
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    /// Whether something in a value is hidden.
    #[must_use]
    pub fn hides(&self, value: &Value) -> bool {
        !self.is_empty() && self.value(value) != *value
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.hide(text),
            Value::Number(number) => self.hide(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(fields) => fields.values().for_each(|value| self.collect(value)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn hide(&mut self, text: &str) {
        let trimmed = text.trim();
        if trimmed.chars().count() < MIN_WHOLE {
            return;
        }
        self.whole.extend([text.to_owned(), trimmed.to_owned()]);
        // Templates indent, so texts of several lines are searched line by line.
        let lines = trimmed.lines().map(str::trim);
        let parts = lines.filter(|line| line.chars().count() >= MIN_PART);
        self.parts.extend(parts.map(str::to_owned));
        if trimmed.chars().count() >= MIN_PART {
            let encoded = [text, trimmed].map(|text| STANDARD.encode(text));
            self.parts.extend(encoded);
            self.parts.extend(escaped(trimmed).into_iter().flatten());
        }
    }
}

/// A text as it is escaped in JSON inside an object, plain and as Go escapes it.
fn escaped(text: &str) -> Option<[String; 2]> {
    let quoted = serde_json::to_string(text).ok()?;
    let plain = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let go = plain
        .replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e");
    (go != text).then(|| [plain.to_owned(), go])
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mask({} values)", self.whole.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mask(secret: Value) -> Mask {
        Mask::of([secret].iter())
    }

    #[test]
    fn values_are_hidden_whole_and_inside_of_texts() {
        let mask = mask(json!({
            "db": {"password": "hunter2", "port": 54321, "pin": "1234", "tiny": "abc", "tls": true},
            "keys": ["-----BEGIN-----\nMIIB0123\n-----END-----\n"],
        }));
        for (value, shown) in [
            (json!("hunter2"), json!("***")),
            (json!(54321), json!("***")),
            (json!("54321"), json!("***")),
            (json!("1234"), json!("***")),
            // Too short to be searched in other texts, or at all.
            (json!("x1234"), json!("x1234")),
            (json!("abc"), json!("abc")),
            (json!(true), json!(true)),
            (
                json!("postgres://app:hunter2@db/app"),
                json!("postgres://app:***@db/app"),
            ),
            (json!("aHVudGVyMg=="), json!("***")),
            (
                json!("tls:\n  key: |\n    -----BEGIN-----\n    MIIB0123\n"),
                json!("tls:\n  key: |\n    ***\n    ***\n"),
            ),
            (
                json!({"a": [{"b": "hunter2", "c": 1}]}),
                json!({"a": [{"b": "***", "c": 1}]}),
            ),
        ] {
            assert_eq!(mask.value(&value), shown, "{value}");
        }
        assert!(mask.hides(&json!(["x", 54321])) && !mask.hides(&json!(["x", 1])));
        assert!(!format!("{mask:?}").contains("hunter2"));
    }

    #[test]
    fn values_are_hidden_where_they_are_escaped() {
        let mask = mask(json!({"password": r#"hun"te\r<2"#}));
        for text in [
            r#"{"password":"hun\"te\\r<2"}"#,
            r#"{"password":"hun\"te\\r\u003c2"}"#,
        ] {
            assert_eq!(mask.text(text), r#"{"password":"***"}"#);
        }
    }

    #[test]
    fn where_there_is_too_much_to_look_for_everything_is_hidden() {
        let many: Vec<String> = (0..2000).map(|i| format!("secret-{i}")).collect();
        assert_eq!(mask(json!(many)).text("anything"), "***");
        assert_eq!(Mask::default().text("anything"), "anything");
    }
}
