//! Whether an answer is about what was asked for. A proxy, a cache or a hostile server may answer with something else: read with
//! defaults, that would be an object without fields, or one that seems to be ours.

use serde::Deserialize;

use common::entrance;

use super::super::address::Collection;

/// The kind of an object of which only the metadata was asked for.
const METADATA_KIND: &str = "PartialObjectMetadata";

/// The one object that a request is about.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    kind: String,
    namespace: Option<String>,
    name: String,
}

/// What an answer says it is.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answered {
    kind: String,
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
}

impl Expected {
    /// An object of a collection. Reviews have no name.
    pub(super) fn new(collection: &Collection, name: &str) -> Self {
        Self {
            kind: collection.gvk.kind.clone(),
            namespace: collection.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// Compares an answer with it.
    ///
    /// # Errors
    /// What the answer is instead.
    pub(super) fn check(&self, answer: &[u8]) -> Result<(), String> {
        let Answered { kind, metadata } = entrance::outline(answer)
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
