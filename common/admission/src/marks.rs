//! The metadata and the core flag, which guards need. They are readable even if the rest of an object is not.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::object;
use common::api::installation::AddonInstallation;
use common::api::names::MARKED;
use common::entrance;

/// The metadata, the core flag, and whether the record has objects.
#[derive(Clone, Debug, Default)]
pub struct GuardMarks {
    /// The metadata.
    pub metadata: ObjectMeta,
    /// `spec.coreAddon`.
    pub core: bool,
    /// Whether the inventory lists objects that deleting the record would leave in the cluster (semantics 15).
    pub leaves_objects: bool,
}

impl GuardMarks {
    /// Reads the marks of any object.
    ///
    /// # Errors
    /// The metadata or the core flag has a wrong type.
    pub fn read(object: &RawValue) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct ObjectWithMarks {
            #[serde(deserialize_with = "object::metadata")]
            metadata: ObjectMeta,
            #[serde(default)]
            spec: Option<MarkedSpec>,
            #[serde(default)]
            status: Option<MarkedStatus>,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct MarkedSpec {
            #[serde(default)]
            core_addon: Option<bool>,
            #[serde(default)]
            deletion_policy: Option<String>,
        }
        #[derive(Default, Deserialize)]
        struct MarkedStatus {
            #[serde(default)]
            inventory: Option<Vec<serde::de::IgnoredAny>>,
        }
        let object: ObjectWithMarks = entrance::read_outline(object.get().as_bytes())?;
        let spec = object.spec.unwrap_or_default();
        let inventory = object.status.unwrap_or_default().inventory;
        Ok(Self {
            metadata: object.metadata,
            core: spec.core_addon == Some(true),
            leaves_objects: inventory.is_some_and(|groups| !groups.is_empty())
                && spec.deletion_policy.as_deref() != Some("Orphan"),
        })
    }

    /// Returns the marks of an installation, without looking at its inventory.
    #[must_use]
    pub fn from_installation(installation: &AddonInstallation) -> Self {
        Self {
            metadata: installation.metadata.clone(),
            core: installation.spec.core_addon,
            leaves_objects: false,
        }
    }

    /// Returns the name; empty while the API server has not generated one.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns the namespace; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Returns whether deletion has begun.
    #[must_use]
    pub fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns the value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        Some(self.metadata.labels.as_ref()?.get(name)?)
    }

    /// Returns the value of an annotation.
    #[must_use]
    pub fn annotation(&self, name: &str) -> Option<&str> {
        Some(self.metadata.annotations.as_ref()?.get(name)?)
    }

    /// Returns whether an annotation is set as a mark, with the value [`MARKED`].
    #[must_use]
    pub fn is_marked(&self, name: &str) -> bool {
        self.annotation(name) == Some(MARKED)
    }

    /// Returns whether the object has a finalizer.
    #[must_use]
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.metadata
            .finalizers
            .iter()
            .flatten()
            .any(|finalizer| finalizer == name)
    }
}
