//! Catalogues of the cluster: read whole, written whole.

use kube::ResourceExt as _;
use serde::Deserialize;
use serde_json::json;

use crate::api::catalogue::AddonCatalogue;
use crate::api::names;

use super::address::{Collection, query_value};
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::ListMetadata;
use super::request::{Call, JSON};

/// Catalogues of one page: they hold inline manifests and may be large.
const PAGE: &str = "50";

/// All catalogues of one namespace, or of all, sorted by namespace and name.
///
/// # Errors
/// Those of the requests; [`EngineError::NotInitialised`] where our definitions are missing.
pub async fn list(
    cluster: &Cluster,
    namespace: Option<&str>,
) -> Result<Vec<AddonCatalogue>, EngineError> {
    #[derive(Deserialize)]
    struct Page {
        #[serde(default)]
        metadata: ListMetadata,
        items: Vec<AddonCatalogue>,
    }
    let collection = collection(namespace);
    let mut found = Vec::new();
    let mut next = String::new();
    loop {
        let mut call = Call::list(&collection, JSON).query("limit", PAGE);
        if !next.is_empty() {
            call = call.query("continue", &query_value(&next));
        }
        let page = match cluster.send::<Page>(call).await {
            Ok(answer) => answer.object,
            // The server forgot the place: from the start.
            Err(error) if error.code() == Some(410) && !next.is_empty() => {
                found.clear();
                next.clear();
                continue;
            }
            Err(error) => return Err(error),
        };
        found.extend(page.items);
        next = page.metadata.r#continue;
        if next.is_empty() {
            return Ok(found);
        }
    }
}

/// Creates a catalogue, or replaces the one whose resourceVersion it carries. Returns it as the server completed it.
///
/// # Errors
/// Those of the request: a catalogue of this name that was made or changed meanwhile is a conflict.
pub async fn put(
    cluster: &Cluster,
    catalogue: &AddonCatalogue,
) -> Result<AddonCatalogue, EngineError> {
    let name = catalogue.name_any();
    let collection = collection(catalogue.namespace().as_deref());
    let call = match catalogue.metadata.resource_version {
        None => Call::create(&collection, &name, JSON),
        Some(_) => Call::replace(&collection, &name, JSON),
    };
    let body = serde_json::to_vec(catalogue).map_err(|error| EngineError::Api {
        what: collection.object(&name),
        message: format!("cannot be written as JSON: {error}"),
        code: 0,
    })?;
    let call = call
        .query("fieldManager", names::CLIENT)
        .query("fieldValidation", "Strict")
        .body(body);
    Ok(cluster.send(call).await?.object)
}

/// Deletes a catalogue, if it is still this one; one that is gone is deleted.
///
/// # Errors
/// Those of the request.
pub async fn delete(cluster: &Cluster, catalogue: &AddonCatalogue) -> Result<(), EngineError> {
    let options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": catalogue.uid()},
    });
    let collection = collection(catalogue.namespace().as_deref());
    let call =
        Call::delete(&collection, &catalogue.name_any()).body(options.to_string().into_bytes());
    match cluster.send::<serde::de::IgnoredAny>(call).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

fn collection(namespace: Option<&str>) -> Collection {
    Collection::known(
        names::API_VERSION,
        "AddonCatalogue",
        "addoncatalogues",
        namespace,
    )
}
