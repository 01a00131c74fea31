//! The marks that say whose an object is (semantics 5).

use serde_json::{Map, Value};

use crate::api::names::{ANNOTATION_INSTALLATION, LABEL_OWNER, owner_hash};
use crate::plan::InstallationName;

/// Puts the owner label and the annotation with the installation's name on an object.
///
/// Labels that are no map stay as they are: the API server refuses such an object in its own words.
pub fn mark(object: &mut Value, installation: &InstallationName) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let hash = owner_hash(&installation.namespace, &installation.name);
    for (field, name, value) in [
        ("labels", LABEL_OWNER, hash),
        (
            "annotations",
            ANNOTATION_INSTALLATION,
            installation.to_string(),
        ),
    ] {
        let marks = metadata.entry(field).or_insert(Value::Null);
        if marks.is_null() {
            *marks = Value::Object(Map::new());
        }
        if let Some(marks) = marks.as_object_mut() {
            marks.insert(name.to_owned(), Value::String(value));
        }
    }
}
