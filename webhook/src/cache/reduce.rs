//! What is kept of an object.

use std::sync::Arc;

use common::admission::NamespaceFacts;
use common::admission::listed::CatalogueFacts;
use common::api::catalogue::AddonCatalogue;
use common::api::installation::{AddonInstallation, AddonInstallationSpec, AddonRef};
use common::api::names::{
    ANNOTATION_CLUSTER_DELETING, CLUSTER_LOCAL, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET, MARKED,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::Resource as _;
use kube::core::PartialObjectMeta;
use serde_json::Value;
use tracing::error;

use super::stored::Stored;

/// A catalogue; one that cannot be read counts as missing, so references to it are denied.
pub fn catalogue(object: Stored) -> Option<Arc<CatalogueFacts>> {
    match serde_json::from_value(object.spec) {
        Ok(spec) => {
            let catalogue = AddonCatalogue {
                metadata: object.metadata,
                spec,
                status: None,
            };
            Some(Arc::new(catalogue.into()))
        }
        Err(_) => {
            let name = object.metadata.name.unwrap_or_default();
            error!(
                catalogue = name,
                "a stored catalogue cannot be read: its entries are unknown"
            );
            None
        }
    }
}

/// An installation without status; of one that cannot be read, what guards need.
pub fn installation(object: Stored) -> Option<Arc<AddonInstallation>> {
    let text = |pointer: &str| object.spec.pointer(pointer).and_then(Value::as_str);
    let guarded = AddonInstallationSpec {
        addon_ref: AddonRef {
            name: text("/addonRef/name").unwrap_or_default().to_owned(),
            catalogue: text("/addonRef/catalogue").map(str::to_owned),
            ..AddonRef::default()
        },
        core_addon: object.spec.pointer("/coreAddon") == Some(&Value::Bool(true)),
        ..AddonInstallationSpec::default()
    };
    let spec = serde_json::from_value(object.spec).unwrap_or_else(|_| {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        error!(
            installation = name,
            "a stored installation cannot be read: only its guards hold"
        );
        guarded
    });
    Some(Arc::new(AddonInstallation {
        metadata: object.metadata,
        spec,
        status: None,
    }))
}

/// The facts about a namespace; most have none.
pub fn marks(namespace: PartialObjectMeta<Namespace>) -> Option<NamespaceFacts> {
    let metadata = namespace.meta();
    let facts = NamespaceFacts {
        local: metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(LABEL_CLUSTER))
            .is_some_and(|cluster| cluster == CLUSTER_LOCAL),
        remote: metadata
            .labels
            .as_ref()
            .is_some_and(|labels| labels.contains_key(LABEL_KUBECONFIG_SECRET)),
        cluster_deleting: metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(ANNOTATION_CLUSTER_DELETING))
            .is_some_and(|value| value == MARKED),
        terminating: metadata.deletion_timestamp.is_some(),
    };
    (facts != NamespaceFacts::default()).then_some(facts)
}
