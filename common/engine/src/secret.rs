//! Secrets, read: values and credentials by reference. Nothing of them is stored.

use k8s_openapi::api::core::v1::Secret;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{Call, JSON};

/// A Secret; `None` where there is none.
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

/// The same with our own rights, whoever the cluster acts as: the credentials of a catalogue (semantics 16).
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
