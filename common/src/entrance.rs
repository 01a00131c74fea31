//! The entrance for JSON that others wrote: answers of API servers, reviews, files, texts inside of annotations.
//!
//! serde_json takes a map with the key `$serde_json::private::RawValue` for a text that was parsed before: it reads the JSON inside of
//! its value in the place of the map, with a new limit of depth. A reviewer would see another object than we do, and maps inside of such
//! maps would use up any stack. So every text that becomes a [`serde_json::Value`] is scanned for the key first. The scan does not
//! recurse, and neither does what skips a text that is not read.
//!
//! | bound | of what |
//! |---|---|
//! | [`MAX_DEPTH`] | levels of lists and maps that are read |
//! | [`MAX_STORED_DEPTH`] | levels of what is stored in objects of ours, refused at admission |
//! | [`MAX_NODES`] | scalars, lists and maps of one text |
//! | [`MAX_VALUES`] | bytes of the values of an installation, refused at admission |
//! | [`MAX_LISTED`] | entries of a catalogue, refused at admission |
//!
//! Whoever receives bytes bounds their number. YAML has the same bounds, but fewer nodes ([`crate::manifest::yaml`]).

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Error, Value};

/// Deepest nesting of lists and maps that is read: what serde_json reads.
pub const MAX_DEPTH: usize = 127;
/// Deepest nesting of what is stored in objects of ours: the values of an installation, the specification of a catalogue. The levels up to
/// [`MAX_DEPTH`] are for managedFields, lists, plans and revisions, which have it inside.
pub const MAX_STORED_DEPTH: usize = 100;
/// Most scalars, lists and maps of one text.
pub const MAX_NODES: usize = 5_000_000;
/// Most bytes of the values of an installation: what is read of them takes many times as much.
pub const MAX_VALUES: usize = 256 << 10;
/// Most entries of a catalogue: what is read of each takes more than a thousand bytes.
pub const MAX_LISTED: usize = 10_000;
/// How the keys begin that serde_json takes for its own.
const RESERVED: &str = "$serde_json::private::";

/// Why a text is not read. It repeats nothing of the text, which may hold secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A key that serde_json takes for its own.
    #[error("a key begins with {RESERVED}, which is reserved")]
    Key,
    /// Too many levels.
    #[error("lists and maps nest {levels} levels deep, and {most} are allowed")]
    Depth {
        /// How many there are.
        levels: usize,
        /// How many are allowed.
        most: usize,
    },
    /// The values of an installation are too large.
    #[error(
        "it has {bytes} bytes, and {MAX_VALUES} are allowed: keep what is large in the add-on, or in Secrets (spec.valuesFrom)"
    )]
    Values {
        /// How many there are.
        bytes: usize,
    },
    /// Too many nodes.
    #[error("it has more than {MAX_NODES} scalars, lists and maps")]
    Nodes,
}

/// Refuses values of an installation that have too many bytes.
///
/// # Errors
/// [`Refused::Values`].
pub fn check_values(text: &str) -> Result<(), Refused> {
    let bytes = text.len();
    match bytes > MAX_VALUES {
        true => Err(Refused::Values { bytes }),
        false => Ok(()),
    }
}

/// Whether serde_json takes this key of a map for its own.
#[must_use]
pub fn is_reserved(key: &str) -> bool {
    key.starts_with(RESERVED)
}

/// Refuses a JSON text that nests more than `most` levels deep, has too many nodes, or has a reserved key. It may be no JSON at all:
/// that is found by reading it.
///
/// # Errors
/// [`Refused`].
pub fn check(text: &[u8], most: usize) -> Result<(), Refused> {
    let levels = scan(text)?;
    match levels > most {
        true => Err(Refused::Depth { levels, most }),
        false => Ok(()),
    }
}

/// How deep a text nests.
fn scan(text: &[u8]) -> Result<usize, Refused> {
    let (mut level, mut levels, mut nodes) = (0_usize, 0, 1_usize);
    let mut bytes = text.iter().enumerate();
    while let Some((at, &byte)) = bytes.next() {
        match byte {
            b'"' => {
                let mut is_escaped = false;
                let end = loop {
                    match bytes.next() {
                        Some((_, b'\\')) => {
                            is_escaped = true;
                            bytes.next();
                        }
                        Some((end, b'"')) => break end,
                        Some(_) => {}
                        None => return Ok(levels),
                    }
                };
                let quoted = text.get(at..=end).unwrap_or_default();
                if is_key(text, end) && is_reserved_text(quoted, is_escaped) {
                    return Err(Refused::Key);
                }
            }
            b'{' | b'[' => {
                level += 1;
                nodes += 1;
                levels = levels.max(level);
            }
            b'}' | b']' => level = level.saturating_sub(1),
            b',' => nodes += 1,
            _ => {}
        }
        if nodes > MAX_NODES {
            return Err(Refused::Nodes);
        }
    }
    Ok(levels)
}

/// How many scalars, lists and maps the outer levels of a text have at most, whatever it is. What is read of them takes some memory for
/// each; what is deeper is read only where something else bounds it.
#[must_use]
pub fn nodes(text: &[u8], levels: usize) -> usize {
    let (mut nodes, mut level) = (1, 0_usize);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'[' | b'{' => {
                level += 1;
                nodes += usize::from(level <= levels);
            }
            b']' | b'}' => level = level.saturating_sub(1),
            b',' => nodes += usize::from(level <= levels),
            _ => {}
        }
    }
    nodes
}

/// Whether a string with its quotes begins as a reserved key does.
fn is_reserved_text(quoted: &[u8], is_escaped: bool) -> bool {
    if !is_escaped {
        let text = quoted.get(1..).unwrap_or_default();
        return text.starts_with(RESERVED.as_bytes());
    }
    // One that cannot be decoded is a syntax error when it is read.
    serde_json::from_slice::<String>(quoted).is_ok_and(|text| is_reserved(&text))
}

/// Whether a colon follows.
fn is_key(text: &[u8], end: usize) -> bool {
    let after = text.get(end + 1..).unwrap_or_default();
    after.trim_ascii_start().first() == Some(&b':')
}

/// Reads a JSON text that others wrote.
///
/// # Errors
/// It is not what is asked for, or [`Refused`].
pub fn from_slice<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, Error> {
    let levels = scan(text).map_err(Error::custom)?;
    serde_json::from_slice(text).map_err(|error| with_levels(error, levels))
}

/// Reads a JSON text that others wrote.
///
/// # Errors
/// As [`from_slice`].
pub fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Error> {
    let levels = scan(text.as_bytes()).map_err(Error::custom)?;
    serde_json::from_str(text).map_err(|error| with_levels(error, levels))
}

/// Reads a type that holds no [`serde_json::Value`]: fields that it does not know, and those that are [`RawValue`], are skipped, however
/// deep they nest and whatever their keys are. A `RawValue` is read by [`from_str`] later.
///
/// # Errors
/// It is not what is asked for.
pub fn outline<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, Error> {
    // Of text that was checked once, no string is checked by itself.
    match std::str::from_utf8(text) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(text),
    }
}

/// An error of serde_json; of a text that nests too deep, with its levels. serde_json has no other sign of that than its message.
fn with_levels(error: Error, levels: usize) -> Error {
    let is_too_deep = error.is_syntax() && error.to_string().starts_with("recursion limit");
    match is_too_deep {
        true => Error::custom(Refused::Depth {
            levels,
            most: MAX_DEPTH,
        }),
        false => error,
    }
}

/// What is wrong with a text, without anything of it: errors of serde_json repeat values.
#[must_use]
pub fn category(error: &Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Io => "unreadable",
        serde_json::error::Category::Syntax => "syntax error",
        serde_json::error::Category::Data => "wrong type or missing field",
        serde_json::error::Category::Eof => "cut off",
    }
}

/// Why a text cannot be read of which `most` levels are allowed, without anything of it.
#[must_use]
pub fn reason(text: &[u8], error: &Error, most: usize) -> String {
    match check(text, most) {
        Err(refused) => refused.to_string(),
        Ok(()) => format!(
            "{} at line {}, column {}",
            category(error),
            error.line(),
            error.column()
        ),
    }
}

/// What of an object cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: it cannot be read: {why}")]
pub struct Unreadable {
    /// `spec.values`.
    pub field: &'static str,
    /// Why, without anything of the object.
    pub why: String,
}

/// A list of objects, each of which is read by itself: one that cannot be read says nothing of the others.
#[derive(Debug, Deserialize)]
#[serde(bound = "M: DeserializeOwned + Default")]
pub struct List<'a, M> {
    /// Metadata of the list, of a type without values.
    #[serde(default, deserialize_with = "or_default")]
    pub metadata: M,
    /// The objects. An empty list of Go's is `null`; what has none is not a list.
    #[serde(borrow, deserialize_with = "or_default")]
    pub items: Vec<&'a RawValue>,
}

/// Reads a list, and none of its objects.
///
/// # Errors
/// It is not a list.
pub fn list<M: DeserializeOwned + Default>(text: &[u8]) -> Result<List<'_, M>, Error> {
    outline(text)
}

/// A value that Go writes as `null` where it is empty.
///
/// # Errors
/// Those of the value.
pub fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// The key at the root of an object that was reduced by [`object`]: why.
const REDUCED: &str = "kubectl-addons.dev/unreadable";

/// Reads an object that is one of many. One that cannot be read is reduced to its kind and its metadata, so that it does not seem to be
/// gone; [`reduced`] says why.
///
/// # Errors
/// Its metadata cannot be read either.
pub fn object(text: &str) -> Result<Value, Error> {
    #[derive(Deserialize, Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Reduced {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        api_version: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        kind: String,
        metadata: Metadata,
    }
    #[derive(Default, Deserialize, Serialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Metadata {
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        uid: String,
        resource_version: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        generation: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        creation_timestamp: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        deletion_timestamp: Option<String>,
        labels: BTreeMap<String, String>,
        annotations: BTreeMap<String, String>,
        finalizers: Vec<String>,
        owner_references: Vec<OwnerReference>,
        #[serde(deserialize_with = "each")]
        managed_fields: Vec<Value>,
    }
    let error = match from_str(text) {
        Ok(object) => return Ok(object),
        Err(error) => error,
    };
    let read: Reduced = outline(text.as_bytes())?;
    let mut reduced = serde_json::to_value(read)?;
    if let Some(fields) = reduced.as_object_mut() {
        let why = reason(text.as_bytes(), &error, MAX_DEPTH);
        fields.insert(REDUCED.to_owned(), why.into());
    }
    Ok(reduced)
}

/// Those of a list that can be read.
fn each<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    let items: Vec<&'de RawValue> = or_default(deserializer)?;
    let read = items.into_iter().map(|item| from_str(item.get()));
    Ok(read.filter_map(Result::ok).collect())
}

/// Why an object cannot be read as a whole; `None` of one that is whole.
#[must_use]
pub fn reduced(object: &Value) -> Option<&str> {
    object.get(REDUCED)?.as_str()
}

/// Kind and name of an object, for errors about it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Named {
    kind: String,
    metadata: NamedMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedMetadata {
    name: String,
    namespace: String,
}

impl Named {
    /// Reads them of an object that cannot be read otherwise; empty where it has none.
    #[must_use]
    pub fn of(object: &str) -> Self {
        outline(object.as_bytes()).unwrap_or_default()
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NamedMetadata { name, namespace } = &self.metadata;
        // Objects of a list often have no kind.
        let kind = match self.kind.as_str() {
            "" => "object",
            kind => kind,
        };
        match namespace.as_str() {
            "" => write!(f, "{kind} {name}"),
            namespace => write!(f, "{kind} {namespace}/{name}"),
        }
    }
}

#[cfg(test)]
mod tests;
