//! Reads kops indexes (`kind: Addons`) into the model of AddonCatalogues.
//!
//! As in kops, unknown fields are ignored, field names may have any case (with a warning), and only the first document counts. Where
//! kops would fail later, reading fails here, with an error that names the entry.

pub mod annotation;
mod entry;
mod location;
mod normal;

use std::collections::HashMap;

use serde_json::{Map, Value};

pub use annotation::ChannelVersion;
pub use entry::{DEFAULT_NAMESPACE, EntryProblem};
pub use location::{LocationError, resolve_manifest};

use crate::api::catalogue::{Addon, AddonCatalogueSpec, AddonVersion, Source, UrlSource};
use crate::api::names;
use crate::manifest::digest::sha256_trimmed;
use crate::manifest::yaml::{self, DuplicateKeys, FloatReading, YamlError, YamlOptions};

/// A kops index, as an AddonCatalogue spec.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KopsIndex {
    /// `metadata.name`; empty if it is missing.
    pub name: String,
    /// The catalogue: versions with the same name are one add-on, and all are in the order of the file.
    pub spec: AddonCatalogueSpec,
    /// Warnings about misspelt fields and unreadable ranges.
    pub warnings: Vec<String>,
    /// For each add-on, the positions of its entries in the list of the index.
    pub entries: Vec<Vec<usize>>,
}

/// Why an index cannot be used. `location` is the place that it was read from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The document is not YAML.
    #[error("{location} is neither an index nor a manifest")]
    Yaml {
        /// The location of the index.
        location: String,
        /// The error, with line and column.
        #[source]
        source: YamlError,
    },
    /// A field of the index itself has the wrong type.
    #[error("{location}: {field} must be {expected}")]
    Type {
        /// The location of the index.
        location: String,
        /// The path of the field; `the document` at the root.
        field: &'static str,
        /// The expected type, e.g. a list.
        expected: &'static str,
    },
    /// An entry cannot be used.
    #[error("{location}: {place}: {problem}")]
    Entry {
        /// The location of the index.
        location: String,
        /// The path and the name, such as `spec.addons[2] (coredns)`.
        place: String,
        /// What is wrong. It is part of the message.
        problem: EntryProblem,
    },
}

/// Reads the document at `location`.
///
/// A document with `kind: Addons` and without apiVersion is an index. Any other document makes the whole file one add-on,
/// `manifest-<12 hex digits of sha256(location)>`, with the hash of the trimmed bytes (kops 1.36). A file without documents has no
/// entries.
///
/// # Errors
/// [`ChannelError`].
pub fn parse(bytes: &[u8], location: &str) -> Result<KopsIndex, ChannelError> {
    let (channel, mistakes) = parse_all(bytes, location)?;
    match mistakes.into_iter().next() {
        Some((_, mistake)) => Err(mistake),
        None => Ok(channel),
    }
}

/// Like [`parse`], but collects all errors: it leaves out the entries that cannot be used, and returns each of these with its path
/// (`spec.addons[2]`) and error.
///
/// # Errors
/// [`ChannelError`] if the index itself cannot be read.
pub fn parse_all(
    bytes: &[u8],
    location: &str,
) -> Result<(KopsIndex, Vec<(String, ChannelError)>), ChannelError> {
    let mut mistakes = Vec::new();
    let type_error = |field, expected| ChannelError::Type {
        location: location.to_owned(),
        field,
        expected,
    };
    let document = first_document(bytes).map_err(|source| ChannelError::Yaml {
        location: location.to_owned(),
        source,
    })?;
    let mut channel = match document {
        Value::Null => KopsIndex::default(),
        Value::Object(root) if normal::is_index(&root) => {
            let mut warnings = Vec::new();
            let root = normal::normalize(root, &mut warnings);
            let metadata =
                read_section(&root, "metadata").map_err(|()| type_error("metadata", "a map"))?;
            let name = metadata.and_then(|metadata| metadata.get("name")?.as_str());
            let name = name.unwrap_or_default().to_owned();
            let spec = read_section(&root, "spec").map_err(|()| type_error("spec", "a map"))?;
            let entries = match spec.and_then(|spec| spec.get("addons")) {
                None => &[],
                Some(Value::Array(entries)) => entries.as_slice(),
                Some(_) => return Err(type_error("spec.addons", "a list")),
            };
            let mut channel = KopsIndex {
                name,
                warnings,
                ..KopsIndex::default()
            };
            mistakes = add_entries(&mut channel, entries, location);
            channel
        }
        Value::Object(_) => plain_manifest(bytes, location),
        _ => return Err(type_error("the document", "a map, such as kind: Addons")),
    };
    channel.spec.base_url = Some(location.to_owned());
    Ok((channel, mistakes))
}

impl KopsIndex {
    /// Returns the field of the index that a field of [`KopsIndex::spec`] was read from.
    #[must_use]
    pub fn index_field(&self, field: &str) -> String {
        let found = self.find_entry(field);
        let Some((entry, rest)) = found else {
            return field.to_owned();
        };
        let name = match rest {
            _ if rest.starts_with(".source") => ".manifest",
            ".constraints.kubernetesVersion" => ".kubernetesVersion",
            ".defaultNamespace" => ".namespace",
            rest => rest,
        };
        format!("spec.addons[{entry}]{name}")
    }

    /// Returns the position of the entry that a field belongs to, and the rest of the field's path.
    fn find_entry<'f>(&self, field: &'f str) -> Option<(usize, &'f str)> {
        let (addon, rest) = field.strip_prefix("spec.addons[")?.split_once(']')?;
        let entries = self.entries.get(addon.parse::<usize>().ok()?)?;
        let version = rest.strip_prefix(".versions[");
        let version = version.and_then(|rest| rest.split_once(']'));
        match version {
            Some((version, rest)) => {
                let entry = entries.get(version.parse::<usize>().ok()?)?;
                Some((*entry, rest))
            }
            None => Some((*entries.first()?, rest)),
        }
    }
}

/// Whether a document is an index: `kind: Addons` without apiVersion.
#[must_use]
pub fn is_index(document: &Value) -> bool {
    document.as_object().is_some_and(normal::is_index)
}

/// Whether the first document of a file is an index.
#[must_use]
pub fn holds_index(bytes: &[u8]) -> bool {
    first_document(bytes).is_ok_and(|document| is_index(&document))
}

/// Returns the first document with content, or null if there is none. Repeated keys are tolerated, as in kops, and an unquoted
/// `version: 1.0` is the text `1.0`.
fn first_document(bytes: &[u8]) -> Result<Value, YamlError> {
    let options = YamlOptions {
        duplicate_keys: DuplicateKeys::LastWins,
        floats: FloatReading::Text,
    };
    for document in yaml::documents(bytes, &options) {
        let document = document?;
        if !document.value.is_null() {
            return Ok(document.value);
        }
    }
    Ok(Value::Null)
}

fn read_section<'a>(
    map: &'a Map<String, Value>,
    field: &str,
) -> Result<Option<&'a Map<String, Value>>, ()> {
    match map.get(field) {
        None => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(_) => Err(()),
    }
}

/// Adds the entries of an index, grouped by name. Returns an error for each entry that cannot be used.
fn add_entries(
    channel: &mut KopsIndex,
    entries: &[Value],
    location: &str,
) -> Vec<(String, ChannelError)> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut mistakes = Vec::new();
    let (addons, warnings) = (&mut channel.spec.addons, &mut channel.warnings);
    for (i, value) in entries.iter().enumerate() {
        let path = format!("spec.addons[{i}]");
        let mut place = path.clone();
        if let Some(name) = value.get("name").and_then(Value::as_str) {
            place.push_str(&format!(" ({name})"));
        }
        let (name, version) = match entry::read(value, &channel.name, &place, warnings) {
            Ok(entry) => entry,
            Err(problem) => {
                let location = location.to_owned();
                let mistake = ChannelError::Entry {
                    location,
                    place,
                    problem,
                };
                mistakes.push((path, mistake));
                continue;
            }
        };
        let index = *places.entry(name).or_insert_with_key(|name| {
            addons.push(Addon {
                name: name.clone(),
                ..Addon::default()
            });
            channel.entries.push(Vec::new());
            addons.len() - 1
        });
        if let Some(addon) = addons.get_mut(index) {
            addon.versions.push(version);
        }
        if let Some(entries) = channel.entries.get_mut(index) {
            entries.push(i);
        }
    }
    mistakes
}

/// The prefix of the name of a plain manifest.
const PLAIN_PREFIX: &str = "manifest-";
/// The number of hash digits after this prefix; they are those of the location's hash.
const PLAIN_DIGITS: usize = 12;

/// Whether a name is that of a plain manifest, which neither a catalogue nor an index lists.
#[must_use]
pub fn is_plain_manifest_name(name: &str) -> bool {
    let digits = name.strip_prefix(PLAIN_PREFIX).unwrap_or_default();
    digits.len() == PLAIN_DIGITS && digits.chars().all(|sign| sign.is_ascii_hexdigit())
}

/// Returns a channel with a plain manifest as its only add-on.
fn plain_manifest(bytes: &[u8], location: &str) -> KopsIndex {
    let text = String::from_utf8_lossy(bytes);
    let digits = names::hex_prefix(location.as_bytes(), PLAIN_DIGITS);
    let name = format!("{PLAIN_PREFIX}{digits}");
    let version = AddonVersion {
        source: Source {
            url: Some(UrlSource {
                manifest: location.to_owned(),
                auth: None,
            }),
            ..Source::default()
        },
        manifest_hash: Some(sha256_trimmed(text.as_bytes())),
        default_namespace: Some(entry::DEFAULT_NAMESPACE.to_owned()),
        ..AddonVersion::default()
    };
    KopsIndex {
        name: name.clone(),
        spec: AddonCatalogueSpec {
            addons: vec![Addon {
                name,
                versions: vec![version],
                ..Addon::default()
            }],
            ..AddonCatalogueSpec::default()
        },
        ..KopsIndex::default()
    }
}

#[cfg(test)]
mod tests;
