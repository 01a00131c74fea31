//! Our objects as the watches read them: metadata and spec; the status is skipped.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object of ours without its status: an inventory has up to 0.8 MB and no verdict needs it.
///
/// The spec stays JSON, so that one object that cannot be read does not stop the whole watch.
#[derive(Clone, Debug, Deserialize)]
pub struct Stored {
    /// Metadata without managed fields.
    #[serde(deserialize_with = "without_managers")]
    pub metadata: ObjectMeta,
    /// The spec.
    #[serde(default)]
    pub spec: Value,
}

fn without_managers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let mut metadata = ObjectMeta::deserialize(deserializer)?;
    metadata.managed_fields = None;
    Ok(metadata)
}

impl kube::Resource for Stored {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
