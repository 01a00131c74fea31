//! Catalogues by location: AddonCatalogue manifests or a kops index, told apart by their content.

use anyhow::{Context as _, Result, bail};
use common::api::catalogue::{AddonCatalogue, AddonCatalogueSpec};
use common::api::names;
use common::catalogue::{Catalogue, Origin, channel};
use common::manifest::yaml::{YamlOptions, documents};
use serde_json::Value;

use crate::{Access, url};

/// One catalogue, or the index, that stands at a location.
#[derive(Debug)]
pub struct Located {
    /// The catalogue as it would be added: name, labels and annotations of the file (of an index the name alone), and the
    /// location as base of relative manifests where the file gives none.
    pub object: AddonCatalogue,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// The absolute location.
    pub location: String,
}

/// Fetches and reads everything at a location: one index, or one AddonCatalogue a document.
///
/// # Errors
/// It cannot be fetched, or is neither; with its place. A field that no AddonCatalogue has is an error: it would be lost.
pub async fn read(location: &str, access: &Access<'_>) -> Result<Vec<Located>> {
    let location = url::absolute(location)?;
    let fetched = url::fetch(&location, access).await?;
    let mut documents = documents(&fetched.bytes, &YamlOptions::default()).peekable();
    let ours = matches!(documents.peek(), Some(Ok(first)) if is_catalogue(&first.value));
    if !ours {
        let channel = channel::parse(&fetched.bytes, &location)?;
        let object = AddonCatalogue::new(&channel.name, channel.spec);
        return Ok(vec![located(object, channel.warnings, location)]);
    }
    let mut found = Vec::new();
    for document in documents {
        let document = document.with_context(|| location.clone())?;
        let place = format!("{location}:{}", document.line);
        if document.value.is_null() {
            continue;
        }
        if !is_catalogue(&document.value) {
            bail!("{place}: not an AddonCatalogue; a file holds catalogues only, or one index");
        }
        let object = typed(document.value).with_context(|| place)?;
        found.push(located(object, Vec::new(), location.clone()));
    }
    Ok(found)
}

/// All entries at a location, for commands that need no catalogue in a cluster; and what the user should know.
///
/// # Errors
/// See [`read`].
pub async fn entries(location: &str, access: &Access<'_>) -> Result<(Catalogue, Vec<String>)> {
    let (mut catalogue, mut warnings) = (Catalogue::default(), Vec::new());
    for one in read(location, access).await? {
        let origin = Origin::Index {
            location: one.location,
        };
        let entries = Catalogue::of_spec(&one.object.spec, origin).entries;
        catalogue.entries.extend(entries);
        warnings.extend(one.warnings);
    }
    Ok((catalogue, warnings))
}

fn located(mut object: AddonCatalogue, warnings: Vec<String>, location: String) -> Located {
    let base = object.spec.base_url.take().filter(|base| !base.is_empty());
    object.spec.base_url = Some(base.unwrap_or_else(|| location.clone()));
    Located {
        object,
        warnings,
        location,
    }
}

fn is_catalogue(document: &Value) -> bool {
    let text = |field: &str| document.get(field).and_then(Value::as_str);
    text("apiVersion").is_some_and(|version| version.starts_with(names::GROUP))
        && text("kind") == Some("AddonCatalogue")
}

fn typed(document: Value) -> Result<AddonCatalogue> {
    let version = document.get("apiVersion").and_then(Value::as_str);
    if version != Some(names::API_VERSION) {
        bail!(
            "apiVersion {} is not known here; this client knows {}",
            version.unwrap_or_default(),
            names::API_VERSION
        );
    }
    let spec = document.get("spec").cloned().unwrap_or_default();
    let read: AddonCatalogueSpec = serde_json::from_value(spec.clone()).context("spec")?;
    let mut unknown = Vec::new();
    lost(&spec, &serde_json::to_value(&read)?, "spec", &mut unknown);
    if !unknown.is_empty() {
        bail!("unknown field {}", unknown.join(", "));
    }
    let metadata = document.get("metadata").cloned().unwrap_or_default();
    let mut object = AddonCatalogue::new("", read);
    object.metadata = serde_json::from_value(metadata).context("metadata")?;
    // Those of the cluster that the file was copied from.
    object.metadata.resource_version = None;
    object.metadata.uid = None;
    object.metadata.creation_timestamp = None;
    object.metadata.managed_fields = None;
    Ok(object)
}

/// Paths of fields that were written and not read; an empty value loses nothing.
fn lost(written: &Value, read: &Value, path: &str, found: &mut Vec<String>) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written {
                let path = format!("{path}.{key}");
                match read.get(key) {
                    Some(read) => lost(value, read, &path, found),
                    None if is_empty(value) => {}
                    None => found.push(path),
                }
            }
        }
        (Value::Array(written), Value::Array(read)) => {
            for (i, (written, read)) in written.iter().zip(read).enumerate() {
                lost(written, read, &format!("{path}[{i}]"), found);
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(true) | Value::Number(_) => false,
    }
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
                None,
            ),
            (
                json!({"source": {"url": {"manifest": "a"}, "git": null}, "needsPKI": false}),
                None,
            ),
            (
                json!({"source": {"url": {"manifest": "a", "sha": "1"}}, "hash": "2"}),
                Some(
                    "unknown field spec.addons[0].versions[0].hash, spec.addons[0].versions[0].source.url.sha",
                ),
            ),
        ] {
            let read = typed(document(version.clone()));
            let message = read.as_ref().err().map(ToString::to_string);
            assert_eq!(message.as_deref(), expected, "{version}");
            if let Ok(object) = read {
                assert_eq!(object.metadata.resource_version, None);
            }
        }
    }
}
