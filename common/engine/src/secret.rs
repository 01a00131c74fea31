//! Reads Secrets with values and credentials. Their content is not stored.

use k8s_openapi::api::core::v1::Secret;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{Call, JSON};

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
pub async fn of_source(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<Secret>, EngineError> {
    read(cluster, call(namespace, name).own()).await
}

fn call(namespace: &str, name: &str) -> Call {
    let collection = Collection::known("v1", "Secret", "secrets", Some(namespace));
    Call::get(&collection, name, JSON)
}

async fn read(cluster: &Cluster, call: Call) -> Result<Option<Secret>, EngineError> {
    match cluster.home().send::<Secret>(call).await {
        Ok(answer) => Ok(Some(answer.object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
