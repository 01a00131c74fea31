//! A set: a file with the installations of a cluster, as it is kept in Git (semantics 17.8).

pub mod declared;

use std::collections::BTreeSet;

use serde_json::Value;

use addons_render::facts::is_network_plugin;
use common::api::installation::AddonInstallation;
use common::api::names::{API_VERSION, GROUP};
use common::causes::with_causes;
use common::manifest::yaml::{FieldPositions, YamlDocument, YamlError, YamlOptions, documents};
use common::nearest::{did_you_mean, nearest};
use common::schema::mistakes::{DocumentMistake, describe_by_line, find_mistakes};

/// The maximum number of installations in a set.
pub const MAX_INSTALLATIONS: usize = 1_000;

/// Whether nodes become ready only with an installation: a core add-on, or a network plugin.
#[must_use]
pub fn comes_before_nodes(installation: &AddonInstallation) -> bool {
    let spec = &installation.spec;
    spec.core_addon || is_network_plugin(&spec.addon_ref.name)
}

/// Everything that is wrong with a file, in the order of its lines.
#[derive(Debug, thiserror::Error)]
#[error("{}", join_mistakes(.0))]
pub struct SetFileErrors(Vec<SetFileError>);

/// The maximum number of mistakes in a file that are listed.
const MOST_MISTAKES: usize = 20;

fn join_mistakes(errors: &[SetFileError]) -> String {
    let mut lines: Vec<String> = errors
        .iter()
        .take(MOST_MISTAKES)
        .map(|one| with_causes(one))
        .collect();
    if errors.len() > MOST_MISTAKES {
        lines.push(format!("and {} more", errors.len() - MOST_MISTAKES));
    }
    lines.join("\n")
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
    #[error(
        "{place}: {found} is not an AddonInstallation of {API_VERSION}{}",
        did_you_mean(near.as_deref())
    )]
    Kind {
        /// `FILE:LINE`.
        place: String,
        /// `kind Deployment of apps/v1`.
        found: String,
        /// The kind that may have been meant.
        near: Option<String>,
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

/// Whether a file begins with an object of ours, and so is meant as a set even if it has mistakes.
#[must_use]
pub fn is_set(bytes: &[u8]) -> bool {
    let documents = documents(bytes, &YamlOptions::default()).map_while(Result::ok);
    let first = documents.flat_map(split_objects).next();
    first.is_some_and(|(_, value)| {
        let group = value["apiVersion"].as_str().unwrap_or_default();
        value["kind"].is_string() && group.split('/').next() == Some(GROUP)
    })
}

/// Reads the installations in a file, for a namespace. A document is one installation, or a List of them.
///
/// # Errors
/// All mistakes of the file.
pub fn read_set(
    bytes: &[u8],
    file: &str,
    namespace: &str,
) -> Result<Vec<AddonInstallation>, SetFileErrors> {
    let (mut found, mut mistakes) = (Vec::new(), Vec::new());
    for document in documents(bytes, &YamlOptions::default()) {
        match document {
            Ok(document) => {
                let line = document.line;
                found.extend(split_objects(document).map(|(path, value)| (line, path, value)));
            }
            Err(source) => {
                let file = file.to_owned();
                mistakes.push(SetFileError::Yaml { file, source });
            }
        }
    }
    if mistakes.is_empty() && (found.is_empty() || found.len() > MAX_INSTALLATIONS) {
        return Err(SetFileErrors(vec![SetFileError::Count {
            file: file.to_owned(),
            found: found.len(),
        }]));
    }
    let (mut installations, mut names) = (Vec::new(), BTreeSet::new());
    for (line, path, value) in found.into_iter().take(MAX_INSTALLATIONS) {
        let written = ObjectPlace {
            bytes,
            file,
            line,
            path,
        };
        match parse_installation(&written, value) {
            Ok(object) => {
                mistakes.extend(find_misplaced(&written, &object, namespace, &mut names));
                installations.push(object);
            }
            Err(mistake) => mistakes.push(mistake),
        }
    }
    match mistakes.is_empty() {
        true => Ok(installations),
        false => Err(SetFileErrors(mistakes)),
    }
}

/// Returns what is wrong with the namespace and the name of an installation. `names` are those before it.
fn find_misplaced(
    written: &ObjectPlace<'_>,
    object: &AddonInstallation,
    namespace: &str,
    names: &mut BTreeSet<String>,
) -> Vec<SetFileError> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let asked = object.metadata.namespace.clone();
    let other = asked.filter(|asked| asked != namespace);
    let other = other.map(|found| SetFileError::Namespace {
        place: written.place("metadata.namespace"),
        found,
        namespace: namespace.to_owned(),
    });
    let is_new = names.insert(name.clone());
    let twice = (!is_new).then(|| SetFileError::Twice {
        place: written.place("metadata.name"),
        name,
    });
    other.into_iter().chain(twice).collect()
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
            near: nearest(&kind, ["AddonInstallation"])
                .filter(|near| *near != kind)
                .map(str::to_owned),
        });
    }
    let mut mistakes = find_mistakes::<AddonInstallation>(&value);
    // The status of a file that was copied from a cluster is not read.
    mistakes.retain(|mistake| !mistake.path.starts_with("status"));
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
    let mut object: AddonInstallation = serde_json::from_value(value).map_err(of_serde)?;
    object.status = None;
    Ok(object)
}

#[cfg(test)]
mod tests;
