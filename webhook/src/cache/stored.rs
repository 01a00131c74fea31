//! Our objects, as the watches read them: the metadata, the spec, and from the status only the namespaces of an inventory.

use std::borrow::Cow;
use std::collections::BTreeSet;

use addons_admission::object;
use common::api::installation::{InventoryGroup, namespaces};
use common::entrance;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An object of one of our kinds. An inventory has up to 0.8 MB, and verdicts only need its namespaces.
///
/// The spec stays text and managed fields are skipped, so that one object that cannot be read, however deep it nests, does not stop the
/// whole watch: [`common::entrance`].
#[derive(Clone, Debug, Deserialize)]
pub struct StoredObject {
    /// The metadata fields that verdicts read.
    #[serde(deserialize_with = "object::metadata")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: Option<Box<RawValue>>,
    /// The namespaces of the objects in its inventory.
    #[serde(default, rename = "status", deserialize_with = "of_inventory")]
    pub namespaces: BTreeSet<String>,
}

/// Reads the namespaces of an inventory. A status that cannot be read counts as empty.
fn of_inventory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct StoredStatus {
        inventory: Vec<InventoryGroup>,
    }
    let text = Box::<RawValue>::deserialize(deserializer)?;
    let status: StoredStatus = entrance::read_outline(text.get().as_bytes()).unwrap_or_default();
    let found = namespaces(&status.inventory).map(str::to_owned);
    Ok(found.collect())
}

impl StoredObject {
    /// Returns the text of the spec.
    pub fn spec(&self) -> &str {
        self.spec.as_ref().map_or("null", |spec| spec.get())
    }
}

impl kube::Resource for StoredObject {
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
