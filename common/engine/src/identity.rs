//! The user that the API server sees, and the identity of a cluster.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use serde_json::json;

use addons_admission::Requester;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::PartialObject;
use super::request::{ApiCall, JSON, METADATA};
use super::snapshot::{namespace_collection, read_one};

/// The namespace of Kubernetes components. Every cluster has it, and it is never deleted.
pub const KUBE_SYSTEM: &str = "kube-system";

/// Returns user and groups of our requests, impersonation included.
///
/// # Errors
/// Those of the request.
pub async fn whoami(cluster: &Cluster) -> Result<Requester, EngineError> {
    let kind = "SelfSubjectReview";
    let api_version = "authentication.k8s.io/v1";
    let collection = Collection::from_names(api_version, kind, "selfsubjectreviews", None);
    let review = json!({"apiVersion": api_version, "kind": kind});
    let call = ApiCall::create(&collection, "", JSON).body(review.to_string().into_bytes());
    let review = cluster.send::<SelfSubjectReview>(call).await?.object;
    let info = review
        .status
        .and_then(|status| status.user_info)
        .unwrap_or_default();
    Ok(Requester {
        user: info.username.unwrap_or_default(),
        groups: info.groups.unwrap_or_default(),
    })
}

/// Returns the uid of kube-system, which identifies a cluster, read with our own rights (semantics 6.5); `None` if these are not
/// sufficient.
///
/// # Errors
/// Those of the request.
pub async fn cluster_uid(cluster: &Cluster) -> Result<Option<String>, EngineError> {
    let call = ApiCall::get(&namespace_collection(), KUBE_SYSTEM, METADATA).with_own_rights();
    match cluster.send::<PartialObject>(call).await {
        Ok(answer) => Ok(Some(answer.object.metadata.uid)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(EngineError::Forbidden { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the uid of a namespace, which distinguishes clusters; that of kube-system identifies a cluster (semantics 6.5).
///
/// # Errors
/// Those of the request, or the namespace does not exist.
pub async fn namespace_uid(cluster: &Cluster, namespace: &str) -> Result<String, EngineError> {
    match read_one(cluster, &namespace_collection(), namespace).await? {
        Some(metadata) => Ok(metadata.uid),
        None => Err(EngineError::Api {
            what: format!("Namespace {namespace}"),
            message: "it does not exist, and nothing else identifies the cluster".to_owned(),
            code: 404,
        }),
    }
}
