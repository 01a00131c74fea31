//! A ConfigMap in the cluster of the records, read and written with our own rights, whoever the cluster acts as.

use k8s_openapi::api::core::v1::ConfigMap;
use serde::de::IgnoredAny;

use common::api::names;

use super::address::Collection;
use super::catalogues::Written;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{Call, JSON};

/// Reads one; `None` where there is none.
///
/// # Errors
/// Those of the request.
pub async fn get(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<ConfigMap>, EngineError> {
    let call = Call::get(&collection(namespace), name, JSON).own();
    match cluster.home().send::<ConfigMap>(call).await {
        Ok(answer) => Ok(Some(answer.object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates one, or replaces the data of the one that was read before.
///
/// # Errors
/// Those of the request; a conflict where another client was faster.
pub async fn put(
    cluster: &Cluster,
    live: Option<ConfigMap>,
    wanted: &ConfigMap,
) -> Result<Written, EngineError> {
    let namespace = wanted.metadata.namespace.as_deref().unwrap_or_default();
    let name = wanted.metadata.name.as_deref().unwrap_or_default();
    let collection = collection(namespace);
    let (call, object, written) = match live {
        None => (
            Call::create(&collection, name, JSON),
            wanted.clone(),
            Written::Created,
        ),
        Some(live) if live.data == wanted.data => return Ok(Written::Unchanged),
        Some(mut live) => {
            live.data.clone_from(&wanted.data);
            (
                Call::replace(&collection, name, JSON),
                live,
                Written::Replaced,
            )
        }
    };
    let body = serde_json::to_vec(&object).map_err(|error| EngineError::Api {
        what: collection.object(name),
        message: error.to_string(),
        code: 0,
    })?;
    let call = call.own().query("fieldManager", names::CLIENT).body(body);
    cluster.home().send::<IgnoredAny>(call).await?;
    Ok(written)
}

fn collection(namespace: &str) -> Collection {
    Collection::known("v1", "ConfigMap", "configmaps", Some(namespace))
}
