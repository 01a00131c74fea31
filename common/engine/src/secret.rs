//! Reads Secrets with values and credentials. Their content is not stored.

use k8s_openapi::api::core::v1::Secret;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{self, ApiCall, JSON};

/// Reads a Secret; `None` if it does not exist.
///
/// # Errors
/// Those of the request.
pub async fn get(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<Secret>, EngineError> {
    read(cluster, call(namespace, name)).await
}

/// Reads a Secret with our own rights, whatever account the cluster acts as: the credentials of a catalogue (semantics 16.2).
///
/// # Errors
/// Those of the request.
pub async fn get_with_own_rights(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<Secret>, EngineError> {
    read(cluster, call(namespace, name).with_own_rights()).await
}

fn call(namespace: &str, name: &str) -> ApiCall {
    let collection = Collection::from_names("v1", "Secret", "secrets", Some(namespace));
    ApiCall::get(&collection, name, JSON)
}

async fn read(cluster: &Cluster, call: ApiCall) -> Result<Option<Secret>, EngineError> {
    request::if_found(cluster.home().send::<Secret>(call).await)
}
