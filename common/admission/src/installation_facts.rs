//! Facts about an installation: what it refers to, and whether it is core. Values and status are left out: they can be as large as an
//! object, and no rule reads those of another installation.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use common::api::installation::{AddonInstallation, AddonRef, namespaces};
use common::api::names::{ANNOTATION_RELEASED, FINALIZER_CORE_GUARD, MARKED};

/// Facts about an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallationFacts {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The add-on that it refers to.
    pub addon: AddonRef,
    /// Whether it is a core add-on.
    pub is_core: bool,
    /// Whether it has the guard finalizer of a core set.
    pub is_guarded: bool,
    /// Whether it has the mark of a released core add-on.
    pub is_released: bool,
    /// Whether deletion has begun.
    pub is_being_deleted: bool,
    /// For a core add-on, its [`object_state`].
    pub state: Option<(String, String)>,
    /// For a core add-on, its target namespace and the namespaces of its objects, as far as they are known.
    pub namespaces: BTreeSet<String>,
}

/// Returns the uid and the resourceVersion, which identify a state of an object.
#[must_use]
pub fn object_state(metadata: &ObjectMeta) -> Option<(String, String)> {
    Some((metadata.uid.clone()?, metadata.resource_version.clone()?))
}

impl InstallationFacts {
    /// Returns `NAMESPACE/NAME`.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl From<&AddonInstallation> for InstallationFacts {
    fn from(object: &AddonInstallation) -> Self {
        let (metadata, spec) = (&object.metadata, &object.spec);
        let annotations = metadata.annotations.as_ref();
        let mark = annotations.and_then(|all| all.get(ANNOTATION_RELEASED));
        let mut finalizers = metadata.finalizers.iter().flatten();
        let target = spec.target_namespace.as_deref();
        let status = object.status.iter();
        let inventory = status.flat_map(|status| namespaces(&status.inventory));
        let named = target.into_iter().chain(inventory);
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            addon: spec.addon_ref.clone(),
            is_core: spec.core_addon,
            is_guarded: finalizers.any(|one| one == FINALIZER_CORE_GUARD),
            is_released: mark.is_some_and(|mark| mark == MARKED),
            is_being_deleted: metadata.deletion_timestamp.is_some(),
            state: object_state(metadata).filter(|_| spec.core_addon),
            namespaces: match spec.core_addon {
                true => named.map(str::to_owned).collect(),
                false => BTreeSet::new(),
            },
        }
    }
}

impl From<AddonInstallation> for InstallationFacts {
    fn from(object: AddonInstallation) -> Self {
        Self::from(&object)
    }
}
