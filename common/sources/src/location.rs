//! Catalogues by location: AddonCatalogue manifests or a kops index, distinguished by their content.

mod every;
mod whole;

use common::api::catalogue::{AddonCatalogue, AddonCatalogueSpec};
use common::api::names;
use common::catalogue::channel::ChannelError;
use common::catalogue::{Catalogue, Origin, channel};
use common::manifest::lost::lost;
use common::manifest::yaml::{Document, Places, YamlError, YamlOptions, documents};
use common::nearest::nearest;
use common::schema::mistakes::{self, in_order};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Access;
use crate::url::{self, UrlError};

pub use every::{Everything, Mistake, Part, every};
pub use whole::WholeError;

/// A catalogue or an index at a location.
#[derive(Debug, Serialize, Deserialize)]
pub struct Located {
    /// The catalogue as it would be added: with the name, labels and annotations of the file (of an index only its name), and
    /// with the location as the base of relative manifests if the file sets none.
    pub object: AddonCatalogue,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The absolute location.
    pub location: String,
    /// Whether it is a kops index.
    pub is_index: bool,
}

/// Why a location holds neither catalogues nor an index.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// It cannot be fetched.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] ChannelError),
    /// A folder or an archive that is not an add-on.
    #[error("{location}")]
    Whole {
        /// Of the folder.
        location: String,
        /// Why.
        #[source]
        source: WholeError,
    },
    /// Another process says why it cannot be read.
    #[error("{0}")]
    Elsewhere(String),
    /// Not YAML.
    #[error("{location}")]
    Yaml {
        /// Of the file.
        location: String,
        /// Why.
        #[source]
        source: YamlError,
    },
    /// A document of another kind.
    #[error("{place}: {found} is neither an AddonCatalogue nor a kops index{}", meant(*near))]
    Kind {
        /// `LOCATION:LINE`.
        place: String,
        /// `kind Deployment`, or that there is none.
        found: String,
        /// The kind that may have been meant.
        near: Option<&'static str>,
    },
    /// A catalogue that would not be what the file says.
    #[error("{place}: {mistakes}")]
    Document {
        /// `LOCATION:LINE`.
        place: String,
        /// `spec.addons[0].name must be a string, not a list`.
        mistakes: String,
    },
}

/// Fetches and reads everything at a location: one index, or one AddonCatalogue a document.
///
/// # Errors
/// [`CatalogueError`]. A field that no AddonCatalogue has is an error: it would be lost.
pub async fn read(location: &str, access: &Access<'_>) -> Result<Vec<Located>, CatalogueError> {
    let location = url::absolute(location)?;
    let fetched = url::fetch(&location, access).await?;
    parse(&fetched.bytes, location, false)
}

/// What a file holds that was read at `location`, as [`read`] does.
///
/// # Errors
/// See [`read`].
pub fn of_bytes(bytes: &[u8], location: &str) -> Result<Vec<Located>, CatalogueError> {
    parse(bytes, location.to_owned(), false)
}

fn parse(
    bytes: &[u8],
    location: String,
    takes_manifests: bool,
) -> Result<Vec<Located>, CatalogueError> {
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
        let index = located(object, channel.warnings, location);
        return Ok(vec![Located {
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
        let object = typed(document.value).map_err(|mistakes| {
            let places = Places::of(bytes, document.line);
            let (line, mistakes) = in_order(&mistakes, |path| places.at(path).0);
            let place = format!("{location}:{line}");
            CatalogueError::Document { place, mistakes }
        })?;
        found.push(located(object, Vec::new(), location.clone()));
    }
    Ok(found)
}

/// What a location holds that add-ons are installed from, before it is read.
#[derive(Debug)]
pub enum Held {
    /// A folder or an archive of manifests or of a chart: one add-on.
    Whole(Box<Located>),
    /// A file.
    File {
        /// Its bytes.
        bytes: Vec<u8>,
        /// The absolute location.
        location: String,
    },
}

/// Fetches what a location holds, for commands that need no catalogue in a cluster.
///
/// # Errors
/// [`CatalogueError`].
pub async fn fetch(location: &str, access: &Access<'_>) -> Result<Held, CatalogueError> {
    let location = url::absolute(location)?;
    if let Some(whole) = whole::of(&location, access).await? {
        return Ok(Held::Whole(Box::new(whole)));
    }
    let bytes = url::fetch(&location, access).await?.bytes;
    Ok(Held::File { bytes, location })
}

/// As [`of_bytes`], where any other document makes the file one add-on, as in kops.
///
/// # Errors
/// See [`read`].
pub fn of_any_bytes(bytes: &[u8], location: &str) -> Result<Vec<Located>, CatalogueError> {
    parse(bytes, location.to_owned(), true)
}

/// All entries of what was read, and warnings for the user.
#[must_use]
pub fn entries(found: Vec<Located>) -> (Catalogue, Vec<String>) {
    let (mut catalogue, mut warnings) = (Catalogue::default(), Vec::new());
    for one in found {
        let origin = Origin::Index {
            location: one.location,
        };
        let entries = Catalogue::of_spec(&one.object.spec, origin).entries;
        catalogue.entries.extend(entries);
        warnings.extend(one.warnings);
    }
    (catalogue, warnings)
}

fn located(mut object: AddonCatalogue, warnings: Vec<String>, location: String) -> Located {
    let base = object.spec.base_url.take().filter(|base| !base.is_empty());
    object.spec.base_url = Some(base.unwrap_or_else(|| location.clone()));
    Located {
        object,
        warnings,
        location,
        is_index: false,
    }
}

fn is_catalogue(document: &Value) -> bool {
    let text = |field: &str| document.get(field).and_then(Value::as_str);
    text("apiVersion").is_some_and(|version| version.starts_with(names::GROUP))
        && text("kind") == Some("AddonCatalogue")
}

/// Whether a document holds nothing but comments.
fn is_empty_document(document: &Result<Document, YamlError>) -> bool {
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

/// What a document of another kind may have been meant as.
fn meant(near: Option<&'static str>) -> String {
    match near {
        Some("AddonCatalogue") => format!(
            "; did you mean apiVersion {} and kind AddonCatalogue?",
            names::API_VERSION
        ),
        Some(_) => "; did you mean kind Addons, without apiVersion?".to_owned(),
        None => String::new(),
    }
}

fn typed(document: Value) -> Result<AddonCatalogue, Vec<mistakes::Mistake>> {
    let version = document.get("apiVersion").and_then(Value::as_str);
    if version != Some(names::API_VERSION) {
        let (found, supported) = (version.unwrap_or_default(), names::API_VERSION);
        return Err(vec![mistakes::Mistake {
            path: "apiVersion".to_owned(),
            text: format!("apiVersion {found} is not supported; use {supported}"),
        }]);
    }
    let malformed = |field: &'static str| {
        let document = &document;
        move |_| {
            let mut mistakes = mistakes::mistakes::<AddonCatalogue>(document);
            if mistakes.is_empty() {
                mistakes.push(mistakes::Mistake {
                    path: field.to_owned(),
                    text: format!("{field} cannot be read"),
                });
            }
            mistakes
        }
    };
    let spec = document.get("spec").cloned().unwrap_or_default();
    let read: AddonCatalogueSpec =
        serde_json::from_value(spec.clone()).map_err(malformed("spec"))?;
    let kept = serde_json::to_value(&read).map_err(malformed("spec"))?;
    let unknown = mistakes::unknown(lost(&spec, &kept, "spec"));
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let metadata = document.get("metadata").cloned().unwrap_or_default();
    let mut object = AddonCatalogue::new("", read);
    object.metadata = serde_json::from_value(metadata).map_err(malformed("metadata"))?;
    // A file that was copied from a cluster holds these.
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
            let read = typed(document(version.clone()));
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
            let read = of_bytes(format!("{head}{rest}").as_bytes(), "file:///c.yaml");
            let error = read
                .map(|read| read.len())
                .map_err(|error| error.to_string());
            assert_eq!(error, Err(expected.to_owned()));
        }
        let other = head.replace("v1alpha1", "v1");
        let read = of_bytes(other.as_bytes(), "file:///c.yaml");
        let error = read
            .map(|read| read.len())
            .map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.starts_with("file:///c.yaml:2: apiVersion ")));
    }
}
