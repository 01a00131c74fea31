//! An installation as the rules ask for it: by what it refers to, and whether it is core. Values and status can be as large as an object, and
//! no rule reads those of another installation.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use common::api::installation::{AddonInstallation, AddonRef, namespaces};
use common::api::names::{ANNOTATION_RELEASED, FINALIZER_CORE_GUARD, MARKED};

/// What is known of an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallationFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it refers to.
    pub addon: AddonRef,
    /// Whether it is a core add-on.
    pub is_core: bool,
    /// Whether it has the finalizer of a core set.
    pub is_guarded: bool,
    /// Whether it has the mark of a released core add-on.
    pub is_released: bool,
    /// Whether its deletion has begun.
    pub is_going: bool,
    /// Of a core add-on, its [`state`].
    pub state: Option<(String, String)>,
    /// Of a core add-on, its target namespace and those of its objects, as far as they are known.
    pub namespaces: BTreeSet<String>,
}

/// What identifies a state of an object: its uid and its resourceVersion.
#[must_use]
pub fn state(metadata: &ObjectMeta) -> Option<(String, String)> {
    Some((metadata.uid.clone()?, metadata.resource_version.clone()?))
}

impl InstallationFacts {
    /// `NAMESPACE/NAME`.
    #[must_use]
    pub fn place(&self) -> String {
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
            is_going: metadata.deletion_timestamp.is_some(),
            state: state(metadata).filter(|_| spec.core_addon),
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
