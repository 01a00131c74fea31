//! Reads untrusted JSON: responses of API servers, admission reviews, files, texts inside of annotations.
//!
//! serde_json treats a map with the key `$serde_json::private::RawValue` as a text that was parsed before: it replaces the map with
//! the JSON inside of its value, and begins a new depth limit. A reviewer would see another object than this program, and nested maps
//! of this kind could overflow any stack. Every text that becomes a [`serde_json::Value`] is therefore scanned for the key first. The
//! scan does not recurse, and neither does the code that skips a text without reading it.
//!
//! | bound | of what |
//! |---|---|
//! | [`MAX_DEPTH`] | levels of lists and maps that are read |
//! | [`MAX_STORED_DEPTH`] | levels of what is stored in objects of ours, refused at admission |
//! | [`MAX_NODES`] | scalars, lists and maps of one text |
//! | [`MAX_VALUES`] | bytes of the values of an installation, refused at admission |
//! | [`MAX_LISTED`] | entries of a catalogue, refused at admission |
//!
//! The caller bounds the number of bytes. YAML has the same bounds, but allows fewer nodes ([`crate::manifest::yaml`]).

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Error, Value};

/// The maximum depth of lists and maps: that of serde_json.
pub const MAX_DEPTH: usize = 127;
/// The maximum depth of the values of an installation and of the spec of a catalogue. The levels up to [`MAX_DEPTH`] are for
/// managedFields, lists, plans and revisions, which contain them.
pub const MAX_STORED_DEPTH: usize = 100;
/// The maximum number of scalars, lists and maps in a text.
pub const MAX_NODES: usize = 5_000_000;
/// The maximum size of the values of an installation in bytes. In memory, they take many times as much.
pub const MAX_VALUES: usize = 256 << 10;
/// The maximum number of entries of a catalogue. In memory, each takes more than a thousand bytes.
pub const MAX_LISTED: usize = 10_000;
/// The prefix of the keys that serde_json reserves for itself.
const RESERVED: &str = "$serde_json::private::";

/// Why a text is refused. It repeats nothing of the text, which may contain secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundsError {
    /// The text contains a key that serde_json reserves for itself.
    #[error("a key begins with {RESERVED}, which is reserved")]
    Key,
    /// The text nests too deep.
    #[error("lists and maps nest {levels} levels deep, and {most} are allowed")]
    Depth {
        /// The depth of the text.
        levels: usize,
        /// The maximum depth.
        most: usize,
    },
    /// The values of an installation are too large.
    #[error(
        "it has {bytes} bytes, and {MAX_VALUES} are allowed: keep what is large in the add-on, or in Secrets (spec.valuesFrom)"
    )]
    Values {
        /// The size in bytes.
        bytes: usize,
    },
    /// The text has too many scalars, lists and maps.
    #[error("it has more than {MAX_NODES} scalars, lists and maps")]
    Nodes,
}

/// Checks that the values of an installation are not too large.
///
/// # Errors
/// [`BoundsError::Values`].
pub fn check_values(text: &str) -> Result<(), BoundsError> {
    let bytes = text.len();
    match bytes > MAX_VALUES {
        true => Err(BoundsError::Values { bytes }),
        false => Ok(()),
    }
}

/// Whether serde_json reserves this key of a map for itself.
#[must_use]
pub fn is_reserved(key: &str) -> bool {
    key.starts_with(RESERVED)
}

/// Checks that a JSON text nests at most `most` levels deep, does not have too many nodes, and has no reserved key. The text need not
/// be valid JSON: reading it finds that out.
///
/// # Errors
/// [`BoundsError`].
pub fn check(text: &[u8], most: usize) -> Result<(), BoundsError> {
    let levels = scan(text)?;
    match levels > most {
        true => Err(BoundsError::Depth { levels, most }),
        false => Ok(()),
    }
}

/// Returns the depth of a text. Refuses a reserved key and too many nodes.
fn scan(text: &[u8]) -> Result<usize, BoundsError> {
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
                    return Err(BoundsError::Key);
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
            return Err(BoundsError::Nodes);
        }
    }
    Ok(levels)
}

/// Returns an upper bound for the scalars, lists and maps in the outer `levels` of a text, which need not be valid JSON. Each takes
/// some memory when it is read. Deeper levels are only read where another bound applies.
#[must_use]
pub fn count_nodes(text: &[u8], levels: usize) -> usize {
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

/// Whether a quoted string begins like a reserved key.
fn is_reserved_text(quoted: &[u8], is_escaped: bool) -> bool {
    if !is_escaped {
        let text = quoted.get(1..).unwrap_or_default();
        return text.starts_with(RESERVED.as_bytes());
    }
    // A string that cannot be decoded is a syntax error when it is read.
    serde_json::from_slice::<String>(quoted).is_ok_and(|text| is_reserved(&text))
}

/// Whether a colon follows, so that the string is a key.
fn is_key(text: &[u8], end: usize) -> bool {
    let after = text.get(end + 1..).unwrap_or_default();
    after.trim_ascii_start().first() == Some(&b':')
}

/// Reads an untrusted JSON text.
///
/// # Errors
/// The text has another type, or is refused with [`BoundsError`].
pub fn from_slice<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, Error> {
    let levels = scan(text).map_err(Error::custom)?;
    serde_json::from_slice(text).map_err(|error| add_depth(error, levels))
}

/// Reads an untrusted JSON text.
///
/// # Errors
/// See [`from_slice`].
pub fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Error> {
    let levels = scan(text.as_bytes()).map_err(Error::custom)?;
    serde_json::from_str(text).map_err(|error| add_depth(error, levels))
}

/// Reads a type without any [`serde_json::Value`]. Unknown fields and [`RawValue`] fields are skipped, however deep they nest and
/// whatever their keys are. Read a `RawValue` with [`from_str`] later.
///
/// # Errors
/// The text has another type.
pub fn read_outline<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, Error> {
    // After one check of the whole text, strings are not checked again.
    match std::str::from_utf8(text) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(text),
    }
}

/// Adds the depth to an error about a text that nests too deep. Only the message of serde_json identifies such an error.
fn add_depth(error: Error, levels: usize) -> Error {
    let is_too_deep = error.is_syntax() && error.to_string().starts_with("recursion limit");
    match is_too_deep {
        true => Error::custom(BoundsError::Depth {
            levels,
            most: MAX_DEPTH,
        }),
        false => error,
    }
}

/// Describes what is wrong with a text without repeating any of it, because errors of serde_json contain values.
#[must_use]
pub fn describe_category(error: &Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Io => "unreadable",
        serde_json::error::Category::Syntax => "syntax error",
        serde_json::error::Category::Data => "wrong type or missing field",
        serde_json::error::Category::Eof => "cut off",
    }
}

/// Returns why a text with a maximum depth of `most` cannot be read, without repeating any of it.
#[must_use]
pub fn describe_refusal(text: &[u8], error: &Error, most: usize) -> String {
    match check(text, most) {
        Err(refused) => refused.to_string(),
        Ok(()) => format!(
            "{} at line {}, column {}",
            describe_category(error),
            error.line(),
            error.column()
        ),
    }
}

/// The part of an object that cannot be read, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: it cannot be read: {why}")]
pub struct UnreadableField {
    /// The field, such as `spec.values`.
    pub field: &'static str,
    /// The reason, without content of the object.
    pub why: String,
}

/// A list in which each object is read by itself, so that an unreadable one does not affect the others.
#[derive(Debug, Deserialize)]
#[serde(bound = "M: DeserializeOwned + Default")]
pub struct RawList<'a, M> {
    /// Metadata of the list, in a type without [`serde_json::Value`].
    #[serde(default, deserialize_with = "or_default")]
    pub metadata: M,
    /// The objects. Go writes an empty list as `null`. Without this field, the text is not a list.
    #[serde(borrow, deserialize_with = "or_default")]
    pub items: Vec<&'a RawValue>,
}

/// Reads a list, but none of its objects.
///
/// # Errors
/// The text is not a list.
pub fn read_list<M: DeserializeOwned + Default>(text: &[u8]) -> Result<RawList<'_, M>, Error> {
    read_outline(text)
}

/// Reads a value that Go writes as `null` if it is empty.
///
/// # Errors
/// The value cannot be read.
pub fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// The key at the root of an object that [`read_object`] reduced. Its value is the reason.
const REDUCED: &str = "kubectl-addons.dev/unreadable";

/// Reads an object of a list. If it cannot be read, reduces it to its kind and metadata, so that it does not seem to be deleted;
/// [`reduced_reason`] returns the reason.
///
/// # Errors
/// Its metadata cannot be read either.
pub fn read_object(text: &str) -> Result<Value, Error> {
    #[derive(Deserialize, Serialize)]
    #[serde(rename_all = "camelCase")]
    struct ReducedObject {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        api_version: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        kind: String,
        metadata: ReducedMetadata,
    }
    #[derive(Default, Deserialize, Serialize)]
    #[serde(rename_all = "camelCase", default)]
    struct ReducedMetadata {
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
    let read: ReducedObject = read_outline(text.as_bytes())?;
    let mut reduced = serde_json::to_value(read)?;
    if let Some(fields) = reduced.as_object_mut() {
        let why = describe_refusal(text.as_bytes(), &error, MAX_DEPTH);
        fields.insert(REDUCED.to_owned(), why.into());
    }
    Ok(reduced)
}

/// Reads the items of a list, and leaves out those that cannot be read.
fn each<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    let items: Vec<&'de RawValue> = or_default(deserializer)?;
    let read = items.into_iter().map(|item| from_str(item.get()));
    Ok(read.filter_map(Result::ok).collect())
}

/// Returns why an object was reduced, or `None` if it is complete.
#[must_use]
pub fn reduced_reason(object: &Value) -> Option<&str> {
    object.get(REDUCED)?.as_str()
}

/// Kind and name of an object, for errors about it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ObjectName {
    kind: String,
    metadata: ObjectNameMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ObjectNameMetadata {
    name: String,
    namespace: String,
}

impl ObjectName {
    /// Reads kind and name of an object that cannot be read as a whole. They are empty if they are missing.
    #[must_use]
    pub fn read(object: &str) -> Self {
        read_outline(object.as_bytes()).unwrap_or_default()
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectNameMetadata { name, namespace } = &self.metadata;
        // Objects in a list often have no kind.
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
