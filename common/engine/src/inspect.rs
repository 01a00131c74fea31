//! Reads for a diagnosis: single objects, objects by owner, and the rights of the caller.

use std::collections::BTreeMap;

use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use serde_json::{Value, json};

use addons_plan::found;
use common::api::names::{
    ANNOTATION_INSTALLATION, InstallationName, LABEL_HOLDS_CORE, LABEL_KUBECONFIG_SECRET,
    LABEL_MODE, LABEL_OWNER, MODE_ENSURE_EXISTS,
};
use common::right::Right;
use futures::future::try_join_all;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::facts::slices_collection;
use super::listing;
use super::live;
use super::local::stands_for_this_cluster;
use super::meta::LiveMetadata;
use super::request::{ApiCall, JSON};
use super::snapshot::{namespace_collection, read_all, read_one, read_selected};

/// Kinds that are searched for objects of deleted installations: the common ones, and those that can break a cluster.
const KINDS: [(&str, &str, &str); 10] = [
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "DaemonSet", "daemonsets"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("v1", "Service", "services"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    (
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "clusterroles",
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    ),
];

/// An object with an owner label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedObject {
    /// `web/Deployment shop`.
    pub object: String,
    /// The value of the owner label.
    pub owner: String,
    /// Namespace and name of its installation, if its annotation names it.
    pub installation: Option<InstallationName>,
    /// Namespace and name of the Helm release whose marks it has.
    pub release: Option<String>,
}

/// Facts about a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceState {
    /// Whether it stands for this cluster.
    pub is_local: bool,
    /// Whether it has the label of namespaces that hold core add-ons or their objects.
    pub holds_core: bool,
    /// The kubeconfig Secret of the cluster that it stands for, and whether that Secret exists.
    pub kubeconfig: Option<(String, bool)>,
}

/// Reads the live object with the kind, namespace and name of another one; `None` if it does not exist. Only for the kinds of `deploy/`,
/// whose plural follows from the kind, because discovery is not used.
///
/// # Errors
/// Those of the request.
pub async fn read_object(cluster: &Cluster, like: &Value) -> Result<Option<Value>, EngineError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&like["kind"]);
    let plural = match kind.to_lowercase() {
        kind if kind.ends_with('y') => format!("{}ies", kind.trim_end_matches('y')),
        kind => format!("{kind}s"),
    };
    let metadata = &like["metadata"];
    let collection = Collection::from_names(
        &text(&like["apiVersion"]),
        &kind,
        &plural,
        metadata["namespace"].as_str(),
    );
    live::read(cluster, &collection, &text(&metadata["name"])).await
}

/// Returns the rights that the caller does not have, with one review for each right.
///
/// # Errors
/// Those of the requests.
pub async fn missing_rights(
    cluster: &Cluster,
    rights: &[Right],
) -> Result<Vec<Right>, EngineError> {
    let (api_version, kind) = ("authorization.k8s.io/v1", "SelfSubjectAccessReview");
    let collection = Collection::from_names(api_version, kind, "selfsubjectaccessreviews", None);
    let reviews = rights.iter().map(async |right| {
        let (resource, subresource) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
        let review = json!({
            "apiVersion": api_version,
            "kind": kind,
            "spec": {"resourceAttributes": {
                "verb": right.verb, "group": right.group, "resource": resource, "subresource": subresource,
                "namespace": right.namespace, "name": right.name,
            }},
        });
        let call = ApiCall::create(&collection, "", JSON).body(review.to_string().into_bytes());
        let answer = cluster.send::<SelfSubjectAccessReview>(call).await?.object;
        let is_allowed = answer.status.is_some_and(|status| status.allowed);
        Ok::<_, EngineError>((!is_allowed).then(|| right.clone()))
    });
    let found = try_join_all(reviews).await?;
    Ok(found.into_iter().flatten().collect())
}

/// Returns the objects of some kinds that carry the owner label, with one metadata LIST for each.
///
/// # Errors
/// Those of the requests.
pub async fn list_owned(cluster: &Cluster) -> Result<Vec<OwnedObject>, EngineError> {
    let lists = KINDS.iter().map(async |(api_version, kind, plural)| {
        let collection = Collection::from_names(api_version, kind, plural, None);
        let selectors = [("labelSelector", LABEL_OWNER)];
        let found = read_selected(cluster, &collection, &selectors).await?;
        // Create-only objects stay on purpose when their manifest is removed.
        let is_kept = |it: &LiveMetadata| {
            it.labels
                .get(LABEL_MODE)
                .is_some_and(|mode| mode == MODE_ENSURE_EXISTS)
        };
        let found = found.into_iter().flatten().filter(|it| !is_kept(it));
        Ok::<_, EngineError>(
            found
                .map(|it| to_owned_object(&collection, &it))
                .collect::<Vec<_>>(),
        )
    });
    Ok(try_join_all(lists).await?.into_iter().flatten().collect())
}

fn to_owned_object(collection: &Collection, metadata: &LiveMetadata) -> OwnedObject {
    let pair = metadata.annotations.get(ANNOTATION_INSTALLATION);
    let pair = pair.and_then(|pair| pair.split_once('/'));
    let mark = |name: &str| metadata.annotations.get(name).map(String::as_str);
    OwnedObject {
        object: collection.key(metadata).to_string(),
        owner: metadata
            .labels
            .get(LABEL_OWNER)
            .cloned()
            .unwrap_or_default(),
        installation: pair.map(|(namespace, name)| InstallationName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }),
        release: found::read_helm_release(mark).map(|release| release.to_string()),
    }
}

/// Returns all namespaces, and whether the Secrets that they name exist.
///
/// # Errors
/// Those of the requests.
pub async fn list_namespaces(
    cluster: &Cluster,
) -> Result<BTreeMap<String, NamespaceState>, EngineError> {
    let found = read_all(cluster, &namespace_collection()).await?;
    let read = found.into_iter().flatten().map(async |metadata| {
        let mut kubeconfig = None;
        if let Some(secret) = metadata.labels.get(LABEL_KUBECONFIG_SECRET) {
            let secrets = Collection::from_names("v1", "Secret", "secrets", Some(&metadata.name));
            let is_there = read_one(cluster, &secrets, secret).await?.is_some();
            kubeconfig = Some((secret.clone(), is_there));
        }
        let about = NamespaceState {
            is_local: stands_for_this_cluster(&metadata),
            holds_core: metadata.labels.contains_key(LABEL_HOLDS_CORE),
            kubeconfig,
        };
        Ok::<_, EngineError>((metadata.name, about))
    });
    Ok(try_join_all(read).await?.into_iter().collect())
}

/// Returns how many endpoints of a Service are ready.
///
/// # Errors
/// Those of the request.
pub async fn count_ready_endpoints(
    cluster: &Cluster,
    namespace: &str,
    service: &str,
) -> Result<usize, EngineError> {
    let selector = format!("kubernetes.io/service-name={service}");
    let slices =
        listing::list_all::<Value>(cluster, &slices_collection(namespace), Some(&selector)).await?;
    let endpoints = slices
        .iter()
        .filter_map(|slice| slice["endpoints"].as_array());
    let ready = endpoints
        .flatten()
        .filter(|endpoint| endpoint["conditions"]["ready"] != false);
    Ok(ready.count())
}
