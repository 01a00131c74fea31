//! Our objects as the watches read them: metadata and spec; the status is skipped.

use std::borrow::Cow;

use common::admission::object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::Deserialize;
use serde_json::value::RawValue;

/// An object of ours without its status: an inventory has up to 0.8 MB and no verdict needs it.
///
/// The spec stays text, and managed fields are skipped, so that one object that cannot be read, however deep it nests, does not stop the
/// whole watch: [`common::entrance`].
#[derive(Clone, Debug, Deserialize)]
pub struct Stored {
    /// Metadata, as far as verdicts read it.
    #[serde(deserialize_with = "object::metadata")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: Option<Box<RawValue>>,
}

impl Stored {
    /// The text of the spec.
    pub fn spec(&self) -> &str {
        self.spec.as_ref().map_or("null", |spec| spec.get())
    }
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
