//! The catalogues of a cluster: read, written, removed.

use serde::Serialize;
use serde::de::IgnoredAny;

use common::api::catalogue::AddonCatalogue;
use common::api::names;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::listing;
use super::request::{Call, JSON};

/// What was done with a catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Written {
    /// It did not exist.
    Created,
    /// It had another content.
    Replaced,
    /// It was up to date.
    Unchanged,
}

/// All catalogues of a namespace. [`EngineError::NotInitialised`] where our definitions are missing.
///
/// # Errors
/// Those of the requests.
pub async fn list(cluster: &Cluster, namespace: &str) -> Result<Vec<AddonCatalogue>, EngineError> {
    listing::all(cluster, &collection(namespace), None).await
}

/// Creates a catalogue, or replaces the spec of the one that has its name; labels and annotations of the latter stay.
///
/// # Errors
/// Those of the requests; [`EngineError::Denied`] where admission refuses it.
pub async fn put(cluster: &Cluster, wanted: &AddonCatalogue) -> Result<Written, EngineError> {
    let namespace = wanted
        .metadata
        .namespace
        .as_deref()
        .unwrap_or(names::SYSTEM_NAMESPACE);
    let name = wanted.metadata.name.as_deref().unwrap_or_default();
    let collection = collection(namespace);
    let live = match cluster
        .send::<AddonCatalogue>(Call::get(&collection, name, JSON))
        .await
    {
        Ok(answer) => Some(answer.object),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error),
    };
    let (call, object, written) = match live {
        None => (
            Call::create(&collection, name, JSON),
            wanted.clone(),
            Written::Created,
        ),
        Some(live) if live.spec == wanted.spec => return Ok(Written::Unchanged),
        Some(mut live) => {
            live.spec = wanted.spec.clone();
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
    let call = call.query("fieldManager", names::CLIENT).body(body);
    cluster.send::<IgnoredAny>(call).await?;
    Ok(written)
}

/// Removes a catalogue. `false` where there is none.
///
/// # Errors
/// Those of the request; [`EngineError::Denied`] where admission refuses it.
pub async fn delete(cluster: &Cluster, namespace: &str, name: &str) -> Result<bool, EngineError> {
    match cluster
        .send::<IgnoredAny>(Call::delete(&collection(namespace), name))
        .await
    {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

fn collection(namespace: &str) -> Collection {
    Collection::known(
        names::API_VERSION,
        "AddonCatalogue",
        "addoncatalogues",
        Some(namespace),
    )
}
