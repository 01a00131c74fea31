//! Fields that a chart generates at random (`randAlphaNum`, `genCA`, `uuidv4`): those that differ between two renderings (semantics 12.19).
//! A password that changes with every upgrade would lock out its users, so the live values are kept. All of them are kept or none, because
//! they belong together (a key, its certificate, the caBundle, the checksum of the Secret).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use common::manifest::Manifest;
use common::manifest::key::ObjectKey;
use common::values::path;

/// Functions of sprig whose result differs each time.
const FUNCTIONS: [&str; 20] = [
    "randAlphaNum",
    "randAlpha",
    "randAscii",
    "randNumeric",
    "randInt",
    "randBytes",
    "shuffle",
    "uuidv4",
    "bcrypt",
    "htpasswd",
    "encryptAES",
    "genPrivateKey",
    "genCA",
    "genCAWithKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "now",
    "unixEpoch",
];

/// Returns whether a template may generate something at random: it contains the name of such a function.
#[must_use]
pub fn is_random(template: &[u8]) -> bool {
    contains_word(template, &FUNCTIONS)
}

/// Returns whether a template may read live objects: it contains the name of the function `lookup`.
#[must_use]
pub fn looks_up(template: &[u8]) -> bool {
    contains_word(template, &["lookup"])
}

fn contains_word(template: &[u8], functions: &[&str]) -> bool {
    let text = String::from_utf8_lossy(template);
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.into_iter().any(|word| functions.contains(&word))
}

/// The fields that differ between two renderings of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RandomFields {
    /// The fields, with the index of their object in the first rendering.
    pub fields: Vec<RandomField>,
    /// Whether the objects themselves differ, because their names are generated at random.
    pub objects: bool,
}

/// A field that differs between two renderings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RandomField {
    /// Index of the object.
    pub object: usize,
    /// JSON pointer.
    pub pointer: String,
    /// The common start of both texts.
    before: String,
    /// The common end of both texts.
    after: String,
}

impl RandomFields {
    /// Compares two renderings.
    #[must_use]
    pub fn from_renderings(first: &[Manifest], second: &[Manifest]) -> Self {
        let second: BTreeMap<ObjectKey, &Value> =
            second.iter().filter_map(key_and_object).collect();
        let mut random = Self {
            objects: first.len() != second.len(),
            ..Self::default()
        };
        for (object, manifest) in first.iter().enumerate() {
            let other = key_and_object(manifest).and_then(|(key, _)| second.get(&key));
            match other {
                Some(other) => random.compare(object, "", &manifest.object, other),
                None => random.objects = true,
            }
        }
        random
    }

    /// Returns whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && !self.objects
    }

    fn compare(&mut self, object: usize, pointer: &str, a: &Value, b: &Value) {
        match (a, b) {
            (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
                for ((key, a), b) in a.iter().zip(b.values()) {
                    let key = path::escape_key(key);
                    self.compare(object, &format!("{pointer}/{key}"), a, b);
                }
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for (index, (a, b)) in a.iter().zip(b).enumerate() {
                    self.compare(object, &format!("{pointer}/{index}"), a, b);
                }
            }
            (a, b) if a != b => {
                let (before, after) = common_affixes(&decoded_text(a), &decoded_text(b));
                self.fields.push(RandomField {
                    object,
                    pointer: pointer.to_owned(),
                    before,
                    after,
                });
            }
            _ => {}
        }
    }

    /// Writes the live values of all fields into the objects, or none if one is missing. `live` contains the live objects by their index.
    /// Returns whether it was done.
    #[must_use]
    pub fn keep_live_values(
        &self,
        objects: &mut [Manifest],
        live: &BTreeMap<usize, Value>,
    ) -> bool {
        if self.objects {
            return false;
        }
        let mut kept: Vec<Arc<Value>> = objects.iter().map(|one| Arc::clone(&one.object)).collect();
        for field in &self.fields {
            let (Some(object), Some(live)) = (kept.get_mut(field.object), live.get(&field.object))
            else {
                return false;
            };
            if !field.keep_live_value(Arc::make_mut(object), live) {
                return false;
            }
        }
        for (manifest, object) in objects.iter_mut().zip(kept) {
            manifest.object = object;
        }
        true
    }
}

impl RandomField {
    /// Writes the live value into the object. Returns false if it is missing, or if the chart changed the text around it.
    fn keep_live_value(&self, object: &mut Value, live: &Value) -> bool {
        let of_secret = self.pointer.strip_prefix("/stringData/");
        if let Some(key) = of_secret.filter(|key| !key.contains('/')) {
            // The server moves stringData into data.
            let pointer = format!("/data/{key}");
            let Some(value) = live.pointer(&pointer).filter(|live| self.fits(live)) else {
                return false;
            };
            let key = path::unescape_key(key);
            if let Some(texts) = object.get_mut("stringData").and_then(Value::as_object_mut) {
                texts.remove(&key);
            }
            let fields = object.as_object_mut();
            let data =
                fields.map(|fields| fields.entry("data").or_insert_with(|| json!(Map::new())));
            if let Some(Value::Object(data)) = data {
                data.insert(key, value.clone());
            }
            return true;
        }
        let found = live.pointer(&self.pointer).filter(|live| self.fits(live));
        match (object.pointer_mut(&self.pointer), found) {
            (Some(slot), Some(found)) => {
                *slot = found.clone();
                true
            }
            _ => false,
        }
    }

    fn fits(&self, live: &Value) -> bool {
        let text = decoded_text(live);
        let room = self.before.len() + self.after.len() <= text.len();
        room && text.starts_with(&self.before) && text.ends_with(&self.after)
    }
}

fn key_and_object(manifest: &Manifest) -> Option<(ObjectKey, &Value)> {
    Some((ObjectKey::from_object(&manifest.object)?, &manifest.object))
}

/// Returns a value as text. Text in base64 is decoded.
fn decoded_text(value: &Value) -> Cow<'_, str> {
    let Value::String(text) = value else {
        return Cow::Borrowed("");
    };
    let decoded = STANDARD.decode(text).ok();
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Returns the common start and the common end of two texts, up to whole words: letters that two random words share by chance do not count.
fn common_affixes(a: &str, b: &str) -> (String, String) {
    let is_word = |c: char| c.is_alphanumeric() || "+/=_-.".contains(c);
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b);
    let before: String = same.map(|(a, _)| a).collect();
    let before = before.trim_end_matches(is_word);
    let (a, b) = (
        a.get(before.len()..).unwrap_or_default(),
        b.get(before.len()..).unwrap_or_default(),
    );
    let same = a.chars().rev().zip(b.chars().rev());
    let after: Vec<char> = same.take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    let after: String = after.into_iter().rev().collect();
    (
        before.to_owned(),
        after.trim_start_matches(is_word).to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(password: &str, extra: &str) -> Vec<Manifest> {
        let config = STANDARD.encode(format!("user: me\npassword: {password}\n{extra}"));
        let objects = [
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
                "stringData": {"password": password, "user": "me"}, "data": {"config": config}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "annotations": {"check/sum": password}}}),
        ];
        let manifest = |object| Manifest {
            object: Arc::new(object),
            place: Default::default(),
        };
        objects.map(manifest).into()
    }

    fn live(password: &str, extra: &str) -> BTreeMap<usize, Value> {
        let objects = secret(password, extra).into_iter();
        let mut objects = objects.map(|manifest| Arc::unwrap_or_clone(manifest.object));
        let (mut secret, map) = (objects.next().unwrap(), objects.next().unwrap());
        secret["data"]["password"] = STANDARD.encode(password).into();
        secret["data"]["user"] = STANDARD.encode("me").into();
        BTreeMap::from([(0, secret), (1, map)])
    }

    #[test]
    fn what_differs_is_kept_as_a_whole() {
        let mut wanted = secret("abc1", "mode: x\n");
        let random = RandomFields::from_renderings(&wanted, &secret("abd2", "mode: x\n"));
        let pointers: Vec<&str> = random
            .fields
            .iter()
            .map(|field| field.pointer.as_str())
            .collect();
        let expected = [
            "/data/config",
            "/stringData/password",
            "/metadata/annotations/check~1sum",
        ];
        let mut sorted = pointers.clone();
        sorted.sort_unstable();
        let mut all = expected;
        all.sort_unstable();
        assert_eq!(sorted, all);
        // The checksum is gone: a new one would not be that of the old password.
        let mut partial = live("old", "mode: x\n");
        partial.insert(1, json!({"metadata": {"name": "b"}}));
        let before = wanted.clone();
        assert!(!random.keep_live_values(&mut wanted, &partial));
        assert_eq!(wanted, before);
        assert!(random.keep_live_values(&mut wanted, &live("old", "mode: x\n")));
        assert_eq!(wanted[0].object["data"]["password"], STANDARD.encode("old"));
        assert_eq!(wanted[0].object["stringData"], json!({"user": "me"}));
        assert_eq!(
            wanted[1].object["metadata"]["annotations"]["check/sum"],
            "old"
        );
    }

    /// A file with a password and with settings that the new version changes cannot be kept.
    #[test]
    fn what_stands_around_it_must_be_the_same() {
        let mut wanted = secret("abc1", "mode: y\n");
        let random = RandomFields::from_renderings(&wanted, &secret("abd2", "mode: y\n"));
        assert!(!random.keep_live_values(&mut wanted, &live("old", "mode: x\n")));
    }

    #[test]
    fn random_names_are_told() {
        let mut second = secret("x", "");
        Arc::make_mut(&mut second[1].object)["metadata"]["name"] = "c".into();
        assert!(RandomFields::from_renderings(&secret("x", ""), &second).objects);
        assert!(RandomFields::from_renderings(&secret("x", ""), &secret("x", "")).is_empty());
    }

    #[test]
    fn templates_that_name_a_function() {
        for (template, expected) in [
            ("{{ randAlphaNum 8 | b64enc }}", true),
            ("{{- $ca := genCA \"a\" 365 -}}", true),
            ("{{ .Values.knowledge }} {{ include \"rand\" . }}", false),
        ] {
            assert_eq!(is_random(template.as_bytes()), expected, "{template}");
        }
        assert!(looks_up(
            b"{{- $old := (lookup \"v1\" \"Secret\" \"a\" \"b\") -}}"
        ));
        assert!(!looks_up(b"{{ .Values.lookups }}"));
    }
}
