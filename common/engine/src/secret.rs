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
    let collection = Collection::known("v1", "Secret", "secrets", Some(namespace));
    match cluster
        .send::<Secret>(Call::get(&collection, name, JSON))
        .await
    {
        Ok(answer) => Ok(Some(answer.object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
