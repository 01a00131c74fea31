//! Hides values of Secrets in output for users. Templates may have written them into any object, and servers quote them (semantics 13.3).
//!
//! A scalar of a Secret is hidden if it is a whole value, or part of a longer text (a URL, a configuration file). It is also hidden line by
//! line, as base64, and escaped between quotes. Values that a template changed in other ways cannot be recognised.
//!
//! Only free text is masked. Names, keys, uids, digests and versions never are, even if a Secret contains the same text.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The text that replaces a hidden value.
pub const MASK: &str = "***";
/// Minimum length, in characters, of a whole value that is hidden. Shorter values are too common.
const MIN_WHOLE: usize = 4;
/// Minimum length of a value that is hidden inside of other texts. Shorter values are hidden only if they stand alone.
const MIN_PART: usize = 6;
/// The same for Secrets in manifests, which also contain names of users and databases, and files with their own syntax.
const MIN_OBJECT_PART: usize = 12;
/// If there are more values than this, whole texts are hidden instead of being searched.
const MAX_PARTS: usize = 1000;

/// The scalars of Secrets to hide. [`fmt::Debug`] does not show them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretMask {
    whole: HashSet<String>,
    /// The longest come first, so that no remainder of a longer value stays visible.
    parts: Vec<String>,
    /// Values that are hidden only if they stand alone; true if only in quotes.
    short: BTreeMap<String, bool>,
    /// Whether there are too many values to search, so that whole texts are hidden.
    hides_all: bool,
    /// See [`SecretMask::with_former`].
    hides_former: bool,
}

impl SecretMask {
    /// Returns a mask that hides all scalars of these values.
    #[must_use]
    pub fn from_values<'a>(secrets: impl Iterator<Item = &'a Value>) -> Self {
        let mut mask = Self::default();
        for values in secrets {
            mask.hide_scalars(values);
        }
        mask.sort_parts();
        mask.hides_all = mask.parts.len() > MAX_PARTS;
        mask
    }

    /// Also hides the content of these Secrets of a manifest, which other objects may repeat. If there are too many texts to search, the
    /// shortest are hidden, because passwords matter more than files.
    #[must_use]
    pub fn with_objects<'a>(mut self, secrets: impl Iterator<Item = &'a Value>) -> Self {
        let mut texts: Vec<String> = secrets.flat_map(secret_texts).collect();
        texts.sort_by_key(String::len);
        for text in texts {
            if self.parts.len() >= MAX_PARTS {
                break;
            }
            self.hide(&text, MIN_OBJECT_PART);
        }
        self.sort_parts();
        self
    }

    /// Also hides this text.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        self.hide(text, MIN_PART);
        self.sort_parts();
        self
    }

    /// If `hides` is true, also hides the old side of every change: live objects may contain former values of Secrets, which can no longer
    /// be recognised.
    #[must_use]
    pub fn with_former(mut self, hides: bool) -> Self {
        self.hides_former = hides;
        self
    }

    /// Returns a mask for messages about one Secret of a manifest, which hides its content.
    #[must_use]
    pub fn from_secret(secret: &Value) -> Self {
        let mut mask = Self::default();
        for text in secret_texts(secret) {
            mask.hide(&text, MIN_PART);
        }
        mask.sort_parts();
        mask
    }

    fn sort_parts(&mut self) {
        self.parts
            .sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.parts.dedup();
    }

    /// Returns whether the mask hides nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// Returns a text without the hidden values.
    #[must_use]
    pub fn mask_text(&self, text: &str) -> String {
        if self.hides_all || self.whole.contains(text) {
            return MASK.to_owned();
        }
        let mut shown = text.to_owned();
        for part in &self.parts {
            if shown.contains(part.as_str()) {
                shown = shown.replace(part.as_str(), MASK);
            }
        }
        for (value, in_quotes) in &self.short {
            if shown.contains(value.as_str()) {
                shown = hide_word(&shown, value, *in_quotes);
            }
        }
        shown
    }

    /// Returns a value without the hidden values. Keys stay.
    #[must_use]
    pub fn mask_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.mask_text(text)),
            Value::Number(number) if self.whole.contains(&number.to_string()) => {
                Value::String(MASK.to_owned())
            }
            Value::Array(items) => items.iter().map(|item| self.mask_value(item)).collect(),
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(key, value)| (key.clone(), self.mask_value(value)))
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    /// Returns an object without the hidden values. Its name stays, even if a Secret contains the same text.
    #[must_use]
    pub fn mask_object(&self, object: &Value) -> Value {
        let mut shown = self.mask_value(object);
        for identity in [
            "/apiVersion",
            "/kind",
            "/metadata/name",
            "/metadata/namespace",
        ] {
            if let (Some(shown), Some(own)) =
                (shown.pointer_mut(identity), object.pointer(identity))
            {
                shown.clone_from(own);
            }
        }
        shown
    }

    /// Returns whether something in a value is hidden.
    #[must_use]
    pub fn hides(&self, value: &Value) -> bool {
        !self.is_empty() && self.mask_value(value) != *value
    }

    /// Hides both sides of a change (old, new) if something in one of them is hidden, because the other one may be the former value of the
    /// Secret. See also [`SecretMask::with_former`].
    pub fn mask_change(&self, [old, new]: [&mut Option<Value>; 2]) {
        let is_hidden = |side: &Option<Value>| side.as_ref().is_some_and(|side| self.hides(side));
        let is_either = is_hidden(old) || is_hidden(new);
        if is_either {
            *new = new.take().map(|_| Value::from(MASK));
        }
        if is_either || self.hides_former && old.as_ref().is_some_and(could_be_secret) {
            *old = old.take().map(|_| Value::from(MASK));
        }
    }

    fn hide_scalars(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.hide(text, MIN_PART),
            Value::Number(number) => self.hide(&number.to_string(), MIN_PART),
            Value::Array(items) => items.iter().for_each(|item| self.hide_scalars(item)),
            Value::Object(fields) => fields.values().for_each(|value| self.hide_scalars(value)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Hides a text wherever it occurs if it has at least `least` characters, and all its lines with that length.
    fn hide(&mut self, text: &str, least: usize) {
        let trimmed = text.trim();
        let length = trimmed.chars().count();
        if length < MIN_WHOLE {
            return;
        }
        self.whole.extend([text.to_owned(), trimmed.to_owned()]);
        let encoded = [text, trimmed].map(|text| STANDARD.encode(text));
        self.parts.extend(encoded);
        if length < least {
            let is_word = |is: fn(char) -> bool| trimmed.chars().all(is);
            let in_quotes = least == MIN_OBJECT_PART
                || is_word(char::is_alphabetic)
                || is_word(char::is_numeric);
            *self.short.entry(trimmed.to_owned()).or_insert(true) &= in_quotes;
            return;
        }
        self.parts.push(trimmed.to_owned());
        self.parts.extend(escaped_forms(trimmed));
        // Templates indent texts, so texts of several lines are searched line by line.
        let lines = trimmed.lines().map(str::trim).filter(|one| *one != trimmed);
        for one in lines.filter(|one| one.chars().count() >= least) {
            if least == MIN_OBJECT_PART && self.parts.len() >= MAX_PARTS {
                return;
            }
            self.parts.push(one.to_owned());
            self.parts.extend(escaped_forms(one));
        }
    }
}

/// Returns whether a value is, or contains, one that would be hidden if it were in a Secret.
fn could_be_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().chars().count() >= MIN_WHOLE,
        Value::Number(number) => number.to_string().len() >= MIN_WHOLE,
        Value::Array(items) => items.iter().any(could_be_secret),
        Value::Object(fields) => fields.values().any(could_be_secret),
        Value::Null | Value::Bool(_) => false,
    }
}

/// Returns the values of a Secret. Values that are not text stay encoded.
fn secret_texts(secret: &Value) -> Vec<String> {
    let texts = |field| {
        let map = secret.get(field).and_then(Value::as_object);
        let values = map.into_iter().flat_map(Map::values);
        values.filter_map(Value::as_str)
    };
    let decoded = |encoded: &str| String::from_utf8(STANDARD.decode(encoded).ok()?).ok();
    texts("data")
        .map(|encoded| decoded(encoded).unwrap_or_else(|| encoded.to_owned()))
        .chain(texts("stringData").map(str::to_owned))
        .collect()
}

/// Hides a short value where it stands alone: not next to letters or digits, or in quotes, as servers quote values. Plain words and numbers
/// occur in many texts that are unrelated to the Secret.
fn hide_word(text: &str, value: &str, in_quotes: bool) -> String {
    let stands_alone = |before: Option<char>, after: Option<char>| {
        if in_quotes {
            let quotes = ['"', '\'', '\\'];
            [before, after]
                .iter()
                .all(|sign| sign.is_some_and(|sign| quotes.contains(&sign)))
        } else {
            ![before, after]
                .iter()
                .flatten()
                .any(|sign| sign.is_alphanumeric())
        }
    };
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(value) {
        shown.push_str(before);
        let hides = stands_alone(shown.chars().next_back(), after.chars().next());
        shown.push_str(if hides { MASK } else { value });
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Returns a text as JSON, Go and YAML write it between quotes, in all forms that differ from the text.
fn escaped_forms(text: &str) -> impl Iterator<Item = String> {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let plain = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let plain = plain.unwrap_or(text);
    let html = plain
        .replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e");
    // The validator that helm uses for schemas writes values in single quotes (santhosh-tekuri/jsonschema, `kind.quote`).
    let of_schema = plain.replace("\\\"", "\"").replace('\'', "\\'");
    let yaml = text.replace('\'', "''");
    let forms = [plain.to_owned(), html, of_schema, yaml];
    forms.into_iter().filter(move |form| form != text)
}

impl fmt::Debug for SecretMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mask({} values)", self.whole.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mask(secret: Value) -> SecretMask {
        SecretMask::from_values([secret].iter())
    }

    #[test]
    fn values_are_hidden_whole_and_inside_of_texts() {
        let mask = mask(json!({
            "db": {"password": "hunter2", "port": 54321, "pin": "1234", "sign": "q9!z", "tiny": "abc", "tls": true},
            "keys": ["-----BEGIN-----\nMIIB0123\n-----END-----\n"],
        }));
        for (value, shown) in [
            (json!("hunter2"), json!("***")),
            (json!(54321), json!("***")),
            (json!("54321"), json!("***")),
            (json!("1234"), json!("***")),
            // Too short to be searched in other texts, or at all.
            (json!("x1234"), json!("x1234")),
            (json!("port 1234"), json!("port 1234")),
            (json!("value \"1234\""), json!("value \"***\"")),
            (json!("pin=q9!z;"), json!("pin=***;")),
            (json!("pin=aq9!z;"), json!("pin=aq9!z;")),
            (json!("cTkheg=="), json!("***")),
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
            assert_eq!(mask.mask_value(&value), shown, "{value}");
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
            assert_eq!(mask.mask_text(text), r#"{"password":"***"}"#);
        }
    }

    #[test]
    fn values_are_hidden_where_they_stand_in_single_quotes() {
        let mask = mask(json!({"password": r#"say "hunter2" to \ 'her'"#}));
        for text in [
            // As helm says that a value does not fit the schema of a chart.
            r#"at '/password': 'say "hunter2" to \\ \'her\'' does not match pattern '^[0-9]+$'"#,
            r#"at '/password': 'say "hunter2" to \ ''her''' does not match pattern '^[0-9]+$'"#,
        ] {
            let shown = "at '/password': '***' does not match pattern '^[0-9]+$'";
            assert_eq!(mask.mask_text(text), shown);
        }
    }

    #[test]
    fn secrets_of_manifests_are_hidden_and_names_are_not() {
        let secret = json!({"kind": "Secret", "data": {"a": "cG9zdGdyZXM=", "b": "/w=="}, "stringData": {"file":
            "server:\n  password: correct-horse\n"}});
        let mask = SecretMask::default().with_objects([secret].iter());
        assert_eq!(
            mask.mask_text("image postgres:16, \"postgres\", password: correct-horse"),
            "image postgres:16, \"***\", ***"
        );
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "postgres"}, "data": {"a": "postgres"}});
        let shown = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "postgres"}, "data": {"a": "***"}});
        assert_eq!(mask.mask_object(&object), shown);
    }

    #[test]
    fn where_there_is_too_much_to_look_for_everything_is_hidden() {
        let many: Vec<String> = (0..2000).map(|i| format!("secret-{i}")).collect();
        assert_eq!(mask(json!(many)).mask_text("anything"), "***");
        let lines = "a line of sixteen\n".repeat(3) + &many.join("-of-this-file\n");
        let secrets = [
            json!({"stringData": {"file": lines}}),
            json!({"stringData": {"more": lines}}),
            json!({"stringData": {"password": "correct horse battery"}}),
        ];
        let mask = SecretMask::default().with_objects(secrets.iter());
        assert_eq!(mask.mask_text("anything"), "anything");
        assert_eq!(mask.mask_text("is correct horse battery"), "is ***");
        assert_eq!(SecretMask::default().mask_text("anything"), "anything");
    }
}
