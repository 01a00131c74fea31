//! Reads and writes a ConfigMap in the cluster of the records, with our own rights, whatever account the cluster acts as.

use k8s_openapi::api::core::v1::ConfigMap;
use serde::de::IgnoredAny;

use common::api::names;

use super::address::Collection;
use super::catalogues::CatalogueWrite;
use super::cluster::Cluster;
use super::error::EngineError;
use super::request::{self, APPLY_PATCH, ApiCall, JSON};

/// HTTP status of a conflict.
const CONFLICT: u16 = 409;

/// Reads a ConfigMap; `None` if it does not exist.
///
/// # Errors
/// Those of the request.
pub async fn get(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<ConfigMap>, EngineError> {
    let call = ApiCall::get(&collection(namespace), name, JSON).with_own_rights();
    request::if_found(cluster.home().send::<ConfigMap>(call).await)
}

/// Creates a ConfigMap, or replaces the data of the one that was read before.
///
/// It is created empty, by server-side apply, because the API server then knows its name, and a role can limit the right to it. The data
/// follows at the resourceVersion of the answer.
///
/// # Errors
/// Those of the request; a conflict if another client was faster.
pub async fn put(
    cluster: &Cluster,
    live: Option<ConfigMap>,
    wanted: &ConfigMap,
) -> Result<CatalogueWrite, EngineError> {
    let namespace = wanted.metadata.namespace.as_deref().unwrap_or_default();
    let name = wanted.metadata.name.as_deref().unwrap_or_default();
    let collection = collection(namespace);
    let failed = |message, code| EngineError::Api {
        what: collection.describe_object(name),
        message,
        code,
    };
    let body = |object: &ConfigMap| {
        serde_json::to_vec(object).map_err(|error| failed(error.to_string(), 0))
    };
    let (mut live, written) = match live {
        Some(live) if live.data == wanted.data => return Ok(CatalogueWrite::Unchanged),
        Some(live) => (live, CatalogueWrite::Replaced),
        None => {
            let empty = ConfigMap {
                data: None,
                ..wanted.clone()
            };
            let call = ApiCall::patch(&collection, name, APPLY_PATCH, JSON)
                .with_own_rights()
                .query("fieldManager", names::CLIENT)
                .body(body(&empty)?);
            let made = cluster.home().send::<ConfigMap>(call).await?.object;
            if made.data.is_some() {
                let message = "another client created it meanwhile".to_owned();
                return Err(failed(message, CONFLICT));
            }
            (made, CatalogueWrite::Created)
        }
    };
    live.data.clone_from(&wanted.data);
    let call = ApiCall::replace(&collection, name, JSON)
        .with_own_rights()
        .query("fieldManager", names::CLIENT)
        .body(body(&live)?);
    cluster.home().send::<IgnoredAny>(call).await?;
    Ok(written)
}

fn collection(namespace: &str) -> Collection {
    Collection::from_names("v1", "ConfigMap", "configmaps", Some(namespace))
}
