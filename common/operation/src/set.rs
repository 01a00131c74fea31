//! A set: a file with the installations of a cluster, as it is kept in Git (semantics 17.8).

pub mod declared;

use std::collections::BTreeSet;

use serde_json::Value;

use addons_render::facts::is_network_plugin;
use common::api::installation::AddonInstallation;
use common::api::names::{API_VERSION, GROUP};
use common::manifest::yaml::{FieldPositions, YamlDocument, YamlError, YamlOptions, documents};
use common::schema::mistakes::{
    DocumentMistake, describe_by_line, find_mistakes, find_unknown_fields,
};

/// The maximum number of installations in a set.
pub const MAX_INSTALLATIONS: usize = 1_000;

/// Whether nodes become ready only with an installation: a core add-on, or a network plugin.
#[must_use]
pub fn comes_before_nodes(installation: &AddonInstallation) -> bool {
    let spec = &installation.spec;
    spec.core_addon || is_network_plugin(&spec.addon_ref.name)
}

/// Why a file is not a set.
#[derive(Debug, thiserror::Error)]
pub enum SetFileError {
    /// The file is not YAML.
    #[error("{file}")]
    Yaml {
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: YamlError,
    },
    /// A document is of another kind.
    #[error("{place}: {found} is not an AddonInstallation of {API_VERSION}")]
    Kind {
        /// `FILE:LINE`.
        place: String,
        /// `kind Deployment of apps/v1`.
        found: String,
    },
    /// An installation cannot be read.
    #[error("{place}: {mistakes}")]
    Malformed {
        /// `FILE:LINE`.
        place: String,
        /// `spec.addonRef.name must be a string, not a number`.
        mistakes: String,
    },
    /// An installation names another namespace.
    #[error(
        "{place}: metadata.namespace is {found}, and this command works in {namespace}: remove the field, or add -n {found}"
    )]
    Namespace {
        /// `FILE:LINE`.
        place: String,
        /// The namespace in the file.
        found: String,
        /// The namespace of the command.
        namespace: String,
    },
    /// Two installations have the same name.
    #[error("{place}: metadata.name: {name} is in this file twice")]
    Twice {
        /// `FILE:LINE`.
        place: String,
        /// The name.
        name: String,
    },
    /// The file has no installations, or too many.
    #[error("{file}: {found} installations; a set has 1 to {MAX_INSTALLATIONS}")]
    Count {
        /// The file.
        file: String,
        /// How many installations it has.
        found: usize,
    },
}

/// Whether a file begins with an installation, and so is meant as a set even if it has mistakes.
#[must_use]
pub fn is_set(bytes: &[u8]) -> bool {
    let documents = documents(bytes, &YamlOptions::default()).map_while(Result::ok);
    let first = documents.flat_map(split_objects).next();
    first.is_some_and(|(_, value)| {
        let group = value["apiVersion"].as_str().unwrap_or_default();
        value["kind"] == "AddonInstallation" && group.split('/').next() == Some(GROUP)
    })
}

/// Reads the installations in a file, for a namespace. A document is one installation, or a List of them.
///
/// # Errors
/// [`SetFileError`], if any installation cannot be read.
pub fn read_set(
    bytes: &[u8],
    file: &str,
    namespace: &str,
) -> Result<Vec<AddonInstallation>, SetFileError> {
    let mut found = Vec::new();
    for document in documents(bytes, &YamlOptions::default()) {
        let document = document.map_err(|source| SetFileError::Yaml {
            file: file.to_owned(),
            source,
        })?;
        let line = document.line;
        found.extend(split_objects(document).map(|(path, value)| (line, path, value)));
    }
    if found.is_empty() || found.len() > MAX_INSTALLATIONS {
        return Err(SetFileError::Count {
            file: file.to_owned(),
            found: found.len(),
        });
    }
    let mut names = BTreeSet::new();
    let found = found.into_iter().map(|(line, path, value)| {
        let written = ObjectPlace {
            bytes,
            file,
            line,
            path,
        };
        let object = parse_installation(&written, value)?;
        let name = object.metadata.name.clone().unwrap_or_default();
        let asked = object.metadata.namespace.clone();
        if let Some(found) = asked.filter(|asked| asked != namespace) {
            let place = written.place("metadata.namespace");
            let namespace = namespace.to_owned();
            return Err(SetFileError::Namespace {
                place,
                found,
                namespace,
            });
        }
        if !names.insert(name.clone()) {
            let place = written.place("metadata.name");
            return Err(SetFileError::Twice { place, name });
        }
        Ok(object)
    });
    found.collect()
}

/// The place of an object in a file. The lines of its fields are looked up only for errors.
struct ObjectPlace<'a> {
    bytes: &'a [u8],
    file: &'a str,
    /// The line of its document.
    line: usize,
    /// The path in its document: `items[0].`, or empty.
    path: String,
}

impl ObjectPlace<'_> {
    /// Returns a function that looks up the line of a field.
    fn lines(&self) -> impl Fn(&str) -> usize {
        let places = FieldPositions::from_document(self.bytes, self.line);
        move |field| places.position(&format!("{}{field}", self.path)).0
    }

    /// Returns `FILE:LINE` of a field.
    fn place(&self, field: &str) -> String {
        format!("{}:{}", self.file, self.lines()(field))
    }

    fn malformed(&self, mistakes: &[DocumentMistake]) -> SetFileError {
        let (line, mistakes) = describe_by_line(mistakes, self.lines());
        SetFileError::Malformed {
            place: format!("{}:{line}", self.file),
            mistakes,
        }
    }
}

/// Returns the objects of a document, each with its path in the document.
fn split_objects(document: YamlDocument) -> impl Iterator<Item = (String, Value)> {
    let mut value = document.value;
    let is_list = value["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    let (items, alone) = match value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => (items, None),
        _ => (Vec::new(), (!value.is_null()).then_some(value)),
    };
    let items = items.into_iter().enumerate();
    let items = items.map(|(at, item)| (format!("items[{at}]."), item));
    items.chain(alone.map(|alone| (String::new(), alone)))
}

fn parse_installation(
    written: &ObjectPlace<'_>,
    value: Value,
) -> Result<AddonInstallation, SetFileError> {
    let text = |field: &str| value[field].as_str().unwrap_or("none").to_owned();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if (kind.as_str(), version.as_str()) != ("AddonInstallation", API_VERSION) {
        let field = match kind.as_str() {
            "AddonInstallation" => "apiVersion",
            _ => "kind",
        };
        return Err(SetFileError::Kind {
            place: written.place(field),
            found: format!("kind {kind} of {version}"),
        });
    }
    let mut mistakes = find_mistakes::<AddonInstallation>(&value);
    if value["metadata"]["name"].as_str().is_none_or(str::is_empty) {
        mistakes.push(DocumentMistake {
            path: "metadata.name".to_owned(),
            text: "metadata.name is missing: an installation is known by it".to_owned(),
        });
    }
    if !mistakes.is_empty() {
        return Err(written.malformed(&mistakes));
    }
    let of_serde = |error: serde_json::Error| {
        written.malformed(&[DocumentMistake {
            path: "spec".to_owned(),
            text: error.to_string(),
        }])
    };
    let spec = value["spec"].clone();
    let mut object: AddonInstallation = serde_json::from_value(value).map_err(of_serde)?;
    let kept = serde_json::to_value(&object.spec).map_err(of_serde)?;
    let unknown = find_unknown_fields(&spec, &kept, "spec");
    if !unknown.is_empty() {
        return Err(written.malformed(&unknown));
    }
    object.status = None;
    Ok(object)
}

#[cfg(test)]
mod tests;
