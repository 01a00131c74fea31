//! Reads catalogues from a location: AddonCatalogue manifests or a kops index, distinguished by their
//! content.

mod catalogue_file;
mod single;

use common::api::catalogue::{AddonCatalogue, AddonCatalogueSpec};
use common::api::names;
use common::catalogue::channel::ChannelError;
use common::catalogue::{Catalogue, Origin, channel};
use common::manifest::yaml::{FieldPositions, YamlDocument, YamlError, YamlOptions, documents};
use common::nearest::nearest;
use common::schema::mistakes::{self, describe_by_line};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::SourceAccess;
use crate::url::{self, UrlError};

pub use catalogue_file::{CatalogueDocument, CatalogueFile, FileMistake, read_all};
pub use single::SingleAddonError;

/// A catalogue or an index and its location.
#[derive(Debug, Serialize, Deserialize)]
pub struct LocatedCatalogue {
    /// The catalogue as it would be added: with the name, labels and annotations of the file (for an index
    /// only the name), and with the location as the base URL of relative manifests unless the file sets one.
    pub object: AddonCatalogue,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The absolute location.
    pub location: String,
    /// Whether the file is a kops index.
    pub is_index: bool,
}

impl LocatedCatalogue {
    fn new(mut object: AddonCatalogue, warnings: Vec<String>, location: String) -> Self {
        let base = object.spec.base_url.take().filter(|base| !base.is_empty());
        object.spec.base_url = Some(base.unwrap_or_else(|| location.clone()));
        Self {
            object,
            warnings,
            location,
            is_index: false,
        }
    }
}

/// Why a location has neither catalogues nor an index.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The location cannot be fetched.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] ChannelError),
    /// The folder or archive is not an add-on.
    #[error("{location}")]
    SingleAddon {
        /// The location of the folder or archive.
        location: String,
        /// Why.
        #[source]
        source: SingleAddonError,
    },
    /// The message of the process that tried to read it.
    #[error("{0}")]
    Elsewhere(String),
    /// The file is not YAML.
    #[error("{location}")]
    Yaml {
        /// The location of the file.
        location: String,
        /// Why.
        #[source]
        source: YamlError,
    },
    /// A document has another kind.
    #[error("{place}: {found} is neither an AddonCatalogue nor a kops index{}", kind_hint(*near))]
    Kind {
        /// `LOCATION:LINE`.
        place: String,
        /// `kind Deployment`, or that there is no kind.
        found: String,
        /// The kind that may have been meant.
        near: Option<&'static str>,
    },
    /// Fields of a catalogue would be lost or have a wrong type.
    #[error("{place}: {mistakes}")]
    Document {
        /// `LOCATION:LINE`.
        place: String,
        /// `spec.addons[0].name must be a string, not a list`.
        mistakes: String,
    },
}

/// Fetches and reads all catalogues at a location: one index, or one AddonCatalogue per document.
///
/// # Errors
/// [`CatalogueError`]. An unknown field is an error because it would be lost.
pub async fn read(
    location: &str,
    access: &SourceAccess<'_>,
) -> Result<Vec<LocatedCatalogue>, CatalogueError> {
    let location = url::absolute(location)?;
    let fetched = url::fetch(&location, access).await?;
    parse_documents(&fetched.bytes, location, false)
}

/// Parses a file that was read from `location`, as [`read`] does.
///
/// # Errors
/// See [`read`].
pub fn parse(bytes: &[u8], location: &str) -> Result<Vec<LocatedCatalogue>, CatalogueError> {
    parse_documents(bytes, location.to_owned(), false)
}

fn parse_documents(
    bytes: &[u8],
    location: String,
    takes_manifests: bool,
) -> Result<Vec<LocatedCatalogue>, CatalogueError> {
    let mut documents = documents(bytes, &YamlOptions::default()).peekable();
    while documents.next_if(is_empty_document).is_some() {}
    if !matches!(documents.peek(), Some(Ok(first)) if is_catalogue(&first.value)) {
        let other = match documents.peek() {
            Some(Ok(first)) if channel::is_index(&first.value) => None,
            Some(Ok(first)) => Some((first.line, &first.value)),
            Some(Err(_)) => None,
            None => Some((1, &Value::Null)),
        };
        if let Some((line, document)) = other.filter(|_| !takes_manifests) {
            return Err(other_kind(format!("{location}:{line}"), document));
        }
        let channel = channel::parse(bytes, &location)?;
        let object = AddonCatalogue::new(&channel.name, channel.spec);
        let index = LocatedCatalogue::new(object, channel.warnings, location);
        return Ok(vec![LocatedCatalogue {
            is_index: true,
            ..index
        }]);
    }
    let mut found = Vec::new();
    for document in documents {
        let document = document.map_err(|source| CatalogueError::Yaml {
            location: location.clone(),
            source,
        })?;
        if document.value.is_null() {
            continue;
        }
        if !is_catalogue(&document.value) {
            let place = format!("{location}:{}", document.line);
            return Err(other_kind(place, &document.value));
        }
        let object = read_catalogue(document.value).map_err(|mistakes| {
            let places = FieldPositions::from_document(bytes, document.line);
            let (line, mistakes) = describe_by_line(&mistakes, |path| places.position(path).0);
            let place = format!("{location}:{line}");
            CatalogueError::Document { place, mistakes }
        })?;
        found.push(LocatedCatalogue::new(object, Vec::new(), location.clone()));
    }
    Ok(found)
}

/// The unparsed content of a location from which add-ons can be installed.
#[derive(Debug)]
pub enum LocationContent {
    /// A folder or an archive of manifests or of a chart, which is one add-on.
    Addon(Box<LocatedCatalogue>),
    /// A file.
    File {
        /// The content.
        bytes: Vec<u8>,
        /// The absolute location.
        location: String,
    },
}

/// Fetches the content of a location, for commands that need no catalogue in a cluster.
///
/// # Errors
/// [`CatalogueError`].
pub async fn fetch(
    location: &str,
    access: &SourceAccess<'_>,
) -> Result<LocationContent, CatalogueError> {
    let location = url::absolute(location)?;
    if let Some(whole) = single::read(&location, access).await? {
        return Ok(LocationContent::Addon(Box::new(whole)));
    }
    let bytes = url::fetch(&location, access).await?.bytes;
    Ok(LocationContent::File { bytes, location })
}

/// Parses a file like [`parse`], but a file of other documents is an add-on with these manifests, as in kops.
///
/// # Errors
/// See [`read`].
pub fn parse_any(bytes: &[u8], location: &str) -> Result<Vec<LocatedCatalogue>, CatalogueError> {
    parse_documents(bytes, location.to_owned(), true)
}

/// Merges the entries of all catalogues, and collects the warnings for the user.
#[must_use]
pub fn entries(found: Vec<LocatedCatalogue>) -> (Catalogue, Vec<String>) {
    let (mut catalogue, mut warnings) = (Catalogue::default(), Vec::new());
    for one in found {
        let origin = Origin::Index {
            location: one.location,
        };
        let entries = Catalogue::from_spec(&one.object.spec, origin).entries;
        catalogue.entries.extend(entries);
        warnings.extend(one.warnings);
    }
    (catalogue, warnings)
}

fn is_catalogue(document: &Value) -> bool {
    let text = |field: &str| document.get(field).and_then(Value::as_str);
    text("apiVersion").is_some_and(|version| version.starts_with(names::GROUP))
        && text("kind") == Some("AddonCatalogue")
}

/// Whether a document has nothing but comments.
fn is_empty_document(document: &Result<YamlDocument, YamlError>) -> bool {
    matches!(document, Ok(document) if document.value.is_null())
}

fn other_kind(place: String, document: &Value) -> CatalogueError {
    let text = |field: &str| document.get(field).and_then(Value::as_str);
    let (kind, version) = (text("kind"), text("apiVersion"));
    let found = match (kind, version) {
        (None, _) if document.is_null() => "an empty file".to_owned(),
        (None, _) => "a document without kind".to_owned(),
        (Some(kind @ ("Addons" | "AddonCatalogue")), version) => {
            format!("kind {kind} with apiVersion {}", version.unwrap_or("none"))
        }
        (Some(kind), _) => format!("kind {kind}"),
    };
    let near = kind.and_then(|kind| {
        let near = nearest(kind, ["AddonCatalogue", "Addons"])?;
        ["AddonCatalogue", "Addons"]
            .into_iter()
            .find(|it| *it == near)
    });
    CatalogueError::Kind { place, found, near }
}

/// The hint for a document whose kind is similar to `near`.
fn kind_hint(near: Option<&'static str>) -> String {
    match near {
        Some("AddonCatalogue") => format!(
            "; did you mean apiVersion {} and kind AddonCatalogue?",
            names::API_VERSION
        ),
        Some(_) => "; did you mean kind Addons, without apiVersion?".to_owned(),
        None => String::new(),
    }
}

fn read_catalogue(document: Value) -> Result<AddonCatalogue, Vec<mistakes::DocumentMistake>> {
    let version = document.get("apiVersion").and_then(Value::as_str);
    if version != Some(names::API_VERSION) {
        let (found, supported) = (version.unwrap_or_default(), names::API_VERSION);
        return Err(vec![mistakes::DocumentMistake {
            path: "apiVersion".to_owned(),
            text: format!("apiVersion {found} is not supported; use {supported}"),
        }]);
    }
    let malformed = |field: &'static str| {
        let document = &document;
        move |_| {
            let mut mistakes = mistakes::find_mistakes::<AddonCatalogue>(document);
            if mistakes.is_empty() {
                mistakes.push(mistakes::DocumentMistake {
                    path: field.to_owned(),
                    text: format!("{field} cannot be read"),
                });
            }
            mistakes
        }
    };
    let spec = document.get("spec").cloned().unwrap_or_default();
    let read: AddonCatalogueSpec = serde_json::from_value(spec).map_err(malformed("spec"))?;
    let unknown = mistakes::find_unknown_fields::<AddonCatalogue>(&document);
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let metadata = document.get("metadata").cloned().unwrap_or_default();
    let mut object = AddonCatalogue::new("", read);
    object.metadata = serde_json::from_value(metadata).map_err(malformed("metadata"))?;
    // A file that was copied from a cluster has these fields.
    object.metadata.resource_version = None;
    object.metadata.uid = None;
    object.metadata.creation_timestamp = None;
    object.metadata.managed_fields = None;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(version: Value) -> Value {
        json!({
            "apiVersion": names::API_VERSION,
            "kind": "AddonCatalogue",
            "metadata": {"name": "c", "resourceVersion": "7"},
            "spec": {"addons": [{"name": "a", "versions": [version]}]},
        })
    }

    #[test]
    fn fields_that_would_be_lost_are_named() {
        for (version, expected) in [
            (
                json!({"version": "1", "source": {"url": {"manifest": "a"}}}),
                Vec::new(),
            ),
            (
                json!({"source": {"url": {"manifest": "a"}, "git": null}, "needsPKI": false}),
                Vec::new(),
            ),
            (
                json!({"source": {"url": {"manifest": "a", "sha": "1"}}, "hash": "2"}),
                vec![
                    "spec.addons[0].versions[0].hash",
                    "spec.addons[0].versions[0].source.url.sha",
                ],
            ),
        ] {
            let read = read_catalogue(document(version.clone()));
            let mistakes = read.as_ref().err().into_iter().flatten();
            let paths: Vec<&str> = mistakes.map(|mistake| &*mistake.path).collect();
            assert_eq!(paths, expected, "{version}");
            if let Ok(object) = read {
                assert_eq!(object.metadata.resource_version, None);
            }
        }
    }

    #[test]
    fn a_mistake_has_the_line_of_its_field() {
        let head = format!(
            "# A team.\napiVersion: {}\nkind: AddonCatalogue\nmetadata:\n  name: c\nspec:\n  addons:\n  - name: a\n",
            names::API_VERSION
        );
        for (rest, expected) in [
            (
                "    versions:\n    - version: 1.2\n      source: {url: {manifest: a}}\n    - source: a\n",
                "file:///c.yaml:10: spec.addons[0].versions[0].version must be a string, not a number: put it in quotes; \
                 line 12: spec.addons[0].versions[1].source must be an object, not a string",
            ),
            (
                "    versions:\n    - source: {url: {manifest: a, sha: b}}\n      hash: c\n",
                "file:///c.yaml:10: unknown field spec.addons[0].versions[0].source.url.sha; remove it or correct its name; \
                 line 11: unknown field spec.addons[0].versions[0].hash; remove it or correct its name",
            ),
        ] {
            let read = parse(format!("{head}{rest}").as_bytes(), "file:///c.yaml");
            let error = read
                .map(|read| read.len())
                .map_err(|error| error.to_string());
            assert_eq!(error, Err(expected.to_owned()));
        }
        let other = head.replace("v1alpha1", "v1");
        let read = parse(other.as_bytes(), "file:///c.yaml");
        let error = read
            .map(|read| read.len())
            .map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.starts_with("file:///c.yaml:2: apiVersion ")));
    }
}
