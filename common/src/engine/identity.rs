//! Who the API server thinks we are.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use serde_json::json;

use crate::admission::Requester;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{Call, JSON};

/// User and groups of our requests, impersonation included.
///
/// # Errors
/// Those of the request.
pub async fn whoami(cluster: &Cluster) -> Result<Requester, EngineError> {
    let kind = "SelfSubjectReview";
    let api_version = "authentication.k8s.io/v1";
    let collection = Collection::known(api_version, kind, "selfsubjectreviews", None);
    let review = json!({"apiVersion": api_version, "kind": kind});
    let call = Call::create(&collection, "", JSON).body(review.to_string().into_bytes());
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
