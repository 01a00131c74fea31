//! Checks the metadata of objects: names become parts of URLs, and marks are added to labels and annotations.

use serde_json::{Map, Value};

use super::{ManifestError, wrong_type};
use crate::manifest::FilePosition;

/// Converts a bare `true` or `false` in the labels `names` to text. Returns a warning for each.
pub(super) fn convert_bare_labels(
    object: &mut Map<String, Value>,
    names: &[&str],
    place: &FilePosition,
) -> Vec<String> {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let labels = metadata.and_then(|metadata| metadata.get_mut("labels")?.as_object_mut());
    let Some(labels) = labels else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    for name in names {
        if let Some(Value::Bool(bare)) = labels.get(*name) {
            let text = bare.to_string();
            warnings.push(format!(
                "{place}: metadata.labels[{name:?}] is the boolean {text}, and counts as text: put it in quotes"
            ));
            labels.insert((*name).to_owned(), Value::String(text));
        }
    }
    warnings
}

/// Checks the fields that become parts of requests, and those to which ownership marks are added.
pub(super) fn check_metadata(
    object: &mut Map<String, Value>,
    kind: &str,
    place: &FilePosition,
) -> Result<(), ManifestError> {
    let metadata = match object.get_mut("metadata") {
        None | Some(Value::Null) => {
            let (place, field) = (place.clone(), "metadata.name");
            return Err(ManifestError::Missing { place, field });
        }
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return Err(wrong_type(place, "metadata", other, "a map")),
    };
    if metadata.get("name").is_none_or(Value::is_null) {
        return Err(if metadata.contains_key("generateName") {
            ManifestError::GenerateName {
                place: place.clone(),
                kind: kind.to_owned(),
            }
        } else {
            let (place, field) = (place.clone(), "metadata.name");
            ManifestError::Missing { place, field }
        });
    }
    if metadata
        .get("namespace")
        .is_some_and(|namespace| namespace.is_null() || namespace == "")
    {
        metadata.remove("namespace");
    }
    for (key, field) in [
        ("name", "metadata.name"),
        ("namespace", "metadata.namespace"),
    ] {
        match metadata.get(key) {
            None => {}
            Some(Value::String(name)) => check_name(name, field, place)?,
            Some(other) => return Err(wrong_type(place, field, other, "text")),
        }
    }
    for field in ["labels", "annotations"] {
        match metadata.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => {
                if let Some((key, value)) = map
                    .iter()
                    .find(|(_, value)| !value.is_string() && !value.is_null())
                {
                    let field = format!("metadata.{field}[{key:?}]");
                    return Err(wrong_type(place, &field, value, "text"));
                }
            }
            Some(other) => {
                return Err(wrong_type(
                    place,
                    &format!("metadata.{field}"),
                    other,
                    "a map",
                ));
            }
        }
    }
    Ok(())
}

/// Checks a name, which becomes part of a URL (Kubernetes' IsValidPathSegmentName).
fn check_name(name: &str, field: &'static str, place: &FilePosition) -> Result<(), ManifestError> {
    let is_segment = !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
    if !is_segment || name.chars().any(char::is_control) {
        return Err(ManifestError::InvalidName {
            place: place.clone(),
            field,
            value: name.to_owned(),
        });
    }
    Ok(())
}
