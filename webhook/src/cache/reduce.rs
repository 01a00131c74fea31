//! Reduces watched objects to the facts that are kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use addons_admission::NamespaceFacts;
use addons_admission::catalogue_facts::CatalogueFacts;
use addons_admission::installation_facts::InstallationFacts;
use addons_admission::rules::size::check_entry_count;
use common::api::catalogue::{AddonCatalogue, AddonCatalogueSpec};
use common::api::installation::{AddonInstallation, AddonInstallationSpec};
use common::api::names::{
    ANNOTATION_CLUSTER_DELETING, CLUSTER_LOCAL, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET, MARKED,
    is_reserved,
};
use common::api::policy::{AddonPolicy, AddonPolicySpec, Installers};
use common::entrance::{self, MAX_STORED_DEPTH};
use common::target::kkp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource as _;
use kube::core::PartialObjectMeta;
use tracing::{error, warn};

use super::stored::StoredObject;
use crate::follow::key;

/// Reduces a catalogue. One that cannot be read counts as missing, so references to it are denied.
pub fn reduce_catalogue(object: StoredObject) -> Option<Arc<CatalogueFacts>> {
    let listed = AddonCatalogueSpec::count_entries(object.spec());
    if let Some(problem) = listed
        .as_ref()
        .ok()
        .and_then(|listed| check_entry_count(*listed))
    {
        error!(
            catalogue = log_name(&object),
            why = problem.message,
            "a stored catalogue is too large: its entries are unknown"
        );
        return None;
    }
    match listed.and_then(|_| entrance::from_str(object.spec())) {
        Ok(spec) => {
            let catalogue = AddonCatalogue {
                metadata: object.metadata,
                spec,
                status: None,
            };
            Some(Arc::new(catalogue.into()))
        }
        Err(error) => {
            error!(
                catalogue = log_name(&object),
                why = unreadable_reason(&object, &error),
                "a stored catalogue cannot be read: its entries are unknown"
            );
            None
        }
    }
}

/// Reduces an installation that is core or refers to catalogues; no rule needs others. If it cannot be read, the facts for guards are
/// kept.
pub fn reduce_installation(object: StoredObject) -> Option<Arc<InstallationFacts>> {
    let spec = AddonInstallationSpec::read(object.spec());
    if let Some(unreadable) = &spec.unreadable {
        error!(
            installation = log_name(&object),
            why = unreadable.to_string(),
            "a stored installation cannot be read: only its guards hold"
        );
    }
    let reference = &spec.addon_ref;
    if !spec.core_addon && !reference.is_of_catalogue() {
        return None;
    }
    let read = AddonInstallation {
        metadata: object.metadata,
        spec,
        status: None,
    };
    let mut facts = InstallationFacts::from(read);
    if facts.is_core {
        facts.namespaces.extend(object.namespaces);
    }
    Some(Arc::new(facts))
}

/// Reduces a policy. While one cannot be read, no one can install (semantics 19.6).
pub fn reduce_policy(object: StoredObject) -> Option<Arc<AddonPolicy>> {
    let spec = entrance::from_str(object.spec()).unwrap_or_else(|error| {
        error!(
            policy = log_name(&object),
            why = unreadable_reason(&object, &error),
            "a stored policy cannot be read: no one may install while it is there"
        );
        AddonPolicySpec {
            installers: Some(Installers::default()),
            ..AddonPolicySpec::default()
        }
    });
    Some(Arc::new(AddonPolicy {
        metadata: object.metadata,
        spec,
    }))
}

/// Returns namespace and name, for the log.
fn log_name(object: &StoredObject) -> String {
    let (namespace, name) = key(object);
    match namespace.as_str() {
        "" => name,
        namespace => format!("{namespace}/{name}"),
    }
}

/// Returns why a spec cannot be read, without quoting it.
fn unreadable_reason(object: &StoredObject, error: &serde_json::Error) -> String {
    entrance::describe_refusal(object.spec().as_bytes(), error, MAX_STORED_DEPTH)
}

/// Returns the facts about a namespace; `None` for most namespaces. Labels are kept if installations are executed there.
pub fn reduce_namespace(
    namespace: PartialObjectMeta<Namespace>,
    system_namespace: &str,
) -> Option<NamespaceFacts> {
    let metadata = namespace.meta();
    let is_reserved = metadata.name.as_deref().is_some_and(is_reserved);
    let labels = metadata.labels.as_ref().filter(|_| !is_reserved);
    let mut facts = NamespaceFacts {
        local: labels
            .and_then(|labels| labels.get(LABEL_CLUSTER))
            .is_some_and(|cluster| cluster == CLUSTER_LOCAL),
        remote: labels.is_some_and(|labels| labels.contains_key(LABEL_KUBECONFIG_SECRET)),
        cluster_deleting: metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(ANNOTATION_CLUSTER_DELETING))
            .is_some_and(|value| value == MARKED),
        terminating: metadata.deletion_timestamp.is_some(),
        kkp: None,
        labels: BTreeMap::new(),
    };
    if facts.local || facts.remote || metadata.name.as_deref() == Some(system_namespace) {
        facts.labels = metadata.labels.clone().unwrap_or_default();
        facts.kkp = kkp_version(metadata);
    }
    (facts != NamespaceFacts::default()).then_some(facts)
}

/// Returns the KKP version that a namespace names. One that cannot be read counts as unknown here, and is an error of the plugin.
fn kkp_version(metadata: &ObjectMeta) -> Option<semver::Version> {
    let namespace = metadata.name.as_deref().unwrap_or_default();
    let version = kkp::read_kkp_version(namespace, metadata.annotations.as_ref()?);
    version
        .inspect_err(
            |error| warn!(%error, "the version of KKP is unknown: every constraint on it matches"),
        )
        .ok()?
}
