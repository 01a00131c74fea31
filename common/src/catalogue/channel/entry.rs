//! Reads one entry of an index.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::api::catalogue::{AddonVersion, Constraints, PruneSpec, Source, UrlSource};
use addons_versions::range::Range;
use addons_versions::{VersionError, tolerant};

/// The namespace of kops' record, and of objects that do not name one.
pub const DEFAULT_NAMESPACE: &str = "kube-system";
/// The maximum length of the name part of an annotation key.
const MAX_NAME: usize = 63;

/// Why an entry cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryProblem {
    /// The list item has no content.
    #[error("the list item is empty: write the entry or remove its dash")]
    Empty,
    /// Neither the entry nor the index has a name.
    #[error("it has no name, and metadata.name is missing too: set one of them")]
    NoName,
    /// The name cannot be an annotation key, and kops records add-ons in annotations `addons.k8s.io/NAME`.
    #[error(
        "the name {name:?} cannot be an annotation key: use at most {MAX_NAME} letters, digits, '.', '_' and '-', \
         with a letter or digit at both ends"
    )]
    Name {
        /// The name as written.
        name: String,
    },
    /// The entry has no manifest.
    #[error("it has no manifest: set a URL, or a path relative to the index")]
    NoManifest,
    /// The version cannot be read.
    #[error("version {0}")]
    Version(VersionError),
    /// A field has the wrong type.
    #[error("{field} must be {expected}")]
    Type {
        /// The name of the field.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
    },
}

/// Reads the name and the version of a normalised entry.
pub(super) fn read(
    value: &Value,
    default_name: &str,
    place: &str,
    warnings: &mut Vec<String>,
) -> Result<(String, AddonVersion), EntryProblem> {
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return Err(EntryProblem::Empty),
        _ => return Err(type_error("the list item", "a map")),
    };
    let name = read_text(map, "name")?.unwrap_or_else(|| default_name.to_owned());
    check_name(&name)?;
    let manifest = read_text(map, "manifest")?.ok_or(EntryProblem::NoManifest)?;
    let version = read_text(map, "version")?.unwrap_or_default();
    if !version.is_empty() {
        tolerant::parse(&version).map_err(EntryProblem::Version)?;
    }
    let kubernetes_version = read_text(map, "kubernetesVersion")?;
    if let Some(Err(error)) = kubernetes_version.as_deref().map(Range::parse) {
        warnings.push(format!(
            "{place}: it fits no cluster, as its kubernetesVersion cannot be read: {error}"
        ));
    }
    let version = AddonVersion {
        version,
        id: read_text(map, "id")?.unwrap_or_default(),
        default_namespace: Some(
            read_text(map, "namespace")?.unwrap_or(DEFAULT_NAMESPACE.to_owned()),
        ),
        source: Source {
            url: Some(UrlSource {
                manifest,
                auth: None,
            }),
            ..Source::default()
        },
        manifest_hash: read_text(map, "manifestHash")?,
        constraints: Constraints {
            kubernetes_version,
            ..Constraints::default()
        },
        selector: read_typed::<BTreeMap<String, String>>(map, "selector", "a map of labels")?,
        prune: read_typed::<PruneSpec>(map, "prune", "a map with kinds, each with its kind")?,
        needs_rolling_update: read_text(map, "needsRollingUpdate")?,
        needs_pki: read_typed(map, "needsPKI", "true or false")?.unwrap_or_default(),
        ..AddonVersion::default()
    };
    Ok((name, version))
}

/// Checks that a name can be the name part of an annotation key. kops would install the add-on first and then fail.
fn check_name(name: &str) -> Result<(), EntryProblem> {
    if name.is_empty() {
        return Err(EntryProblem::NoName);
    }
    let ends = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if ends && name.len() <= MAX_NAME && name.chars().all(inside) {
        Ok(())
    } else {
        Err(EntryProblem::Name {
            name: name.to_owned(),
        })
    }
}

/// Returns a text field. An empty one counts as missing.
fn read_text(
    map: &Map<String, Value>,
    field: &'static str,
) -> Result<Option<String>, EntryProblem> {
    match map.get(field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok((!text.is_empty()).then(|| text.clone())),
        Some(_) => Err(type_error(field, "text")),
    }
}

fn read_typed<T: DeserializeOwned>(
    map: &Map<String, Value>,
    field: &'static str,
    expected: &'static str,
) -> Result<Option<T>, EntryProblem> {
    let Some(value) = map.get(field) else {
        return Ok(None);
    };
    let read = T::deserialize(value).map_err(|_| type_error(field, expected))?;
    Ok(Some(read))
}

fn type_error(field: &'static str, expected: &'static str) -> EntryProblem {
    EntryProblem::Type { field, expected }
}
