//! Checks whether an answer is about the requested object. A proxy, a cache or a hostile server may send something else: parsed with
//! defaults, it would be an object without fields, or seem to be ours.

use serde::Deserialize;

use common::entrance;

use super::super::address::Collection;

/// The kind of an object that was requested with its metadata only.
const METADATA_KIND: &str = "PartialObjectMetadata";

/// The object that a request is about.
#[derive(Clone, Debug)]
pub(super) struct ExpectedObject {
    kind: String,
    namespace: Option<String>,
    name: String,
}

/// The identity of the object in an answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AnsweredObject {
    kind: String,
    metadata: AnsweredMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnsweredMetadata {
    name: Option<String>,
    namespace: Option<String>,
}

impl ExpectedObject {
    /// Returns an expected object of a collection. Reviews have no name.
    pub(super) fn new(collection: &Collection, name: &str) -> Self {
        Self {
            kind: collection.gvk.kind.clone(),
            namespace: collection.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// Compares an answer with the expected object.
    ///
    /// # Errors
    /// A description of the answer.
    pub(super) fn check(&self, answer: &[u8]) -> Result<(), String> {
        let AnsweredObject { kind, metadata } = entrance::read_outline(answer)
            .map_err(|_| "the server's answer is not an object".to_owned())?;
        let name = metadata.name.unwrap_or_default();
        let is_kind = kind.is_empty() || kind == self.kind || kind == METADATA_KIND;
        let is_place = self.namespace.is_none()
            || metadata.namespace.is_none()
            || self.namespace == metadata.namespace;
        if is_kind && is_place && name == self.name {
            return Ok(());
        }
        Err(match (metadata.namespace, name.as_str()) {
            (_, "") => format!("the server answers with a {kind:?} without a name"),
            (None, name) => format!("the server answers with the {kind:?} {name:?}"),
            (Some(namespace), name) => {
                format!("the server answers with the {kind:?} {name:?} in {namespace:?}")
            }
        })
    }
}
