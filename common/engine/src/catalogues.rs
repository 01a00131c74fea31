//! The catalogues of a cluster: read, written, removed.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::IgnoredAny;

use common::api::catalogue::{AddonCatalogue, AddonCatalogueStatus};
use common::api::{conditions, names};

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::listing;
use super::request::{Call, JSON};
use super::status;

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
    listing::all(cluster.home(), &collection(namespace), None).await
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
        .home()
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
    cluster.home().send::<IgnoredAny>(call).await?;
    Ok(written)
}

/// Removes a catalogue. `false` where there is none.
///
/// # Errors
/// Those of the request; [`EngineError::Denied`] where admission refuses it.
pub async fn delete(cluster: &Cluster, namespace: &str, name: &str) -> Result<bool, EngineError> {
    match cluster
        .home()
        .send::<IgnoredAny>(Call::delete(&collection(namespace), name))
        .await
    {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Says in the status of a catalogue, as it was read before, which of its entries others hold: `None` where none. Returns whether
/// something was written: nothing is where the status says so already, and where someone else was faster.
///
/// # Errors
/// Those of the request.
pub async fn mark(
    cluster: &Cluster,
    known: &AddonCatalogue,
    lost: Option<&str>,
) -> Result<bool, EngineError> {
    let Some(status) = marked(known, lost, cluster.home().now()) else {
        return Ok(false);
    };
    let mut object = known.clone();
    object.status = Some(status);
    let namespace = known.metadata.namespace.as_deref().unwrap_or_default();
    let name = known.metadata.name.as_deref().unwrap_or_default();
    let collection = collection(namespace);
    let body = serde_json::to_vec(&object).map_err(|error| EngineError::Api {
        what: collection.object(name),
        message: error.to_string(),
        code: 0,
    })?;
    let call = Call::replace(&collection, name, JSON)
        .subresource("status")
        .query("fieldManager", names::CLIENT)
        .body(body);
    match cluster.home().send::<IgnoredAny>(call).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The status that says it; `None` where nothing would change.
fn marked(
    known: &AddonCatalogue,
    lost: Option<&str>,
    now: Timestamp,
) -> Option<AddonCatalogueStatus> {
    let before = known.status.clone().unwrap_or_default();
    let generation = known.metadata.generation;
    let mut after = before.clone();
    let all = &mut after.conditions;
    match lost {
        Some(message) => {
            let (duplicate, reason) = (conditions::DUPLICATE, "HeldByOther");
            let mut raised = status::condition(duplicate, "True", reason, message.to_owned(), now);
            raised.observed_generation = generation;
            conditions::set(all, raised);
        }
        None => status::lower(all, conditions::DUPLICATE, "Unique", generation, now),
    }
    if before.conditions == after.conditions {
        return None;
    }
    after.observed_generation = generation;
    Some(after)
}

fn collection(namespace: &str) -> Collection {
    Collection::known(
        names::API_VERSION,
        "AddonCatalogue",
        "addoncatalogues",
        Some(namespace),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_others_hold_once() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let mut catalogue = AddonCatalogue::new("a", Default::default());
        catalogue.metadata.generation = Some(3);
        assert_eq!(marked(&catalogue, None, now), None);
        let status = marked(&catalogue, Some("a is held"), now).unwrap();
        let raised = conditions::raised(&status.conditions, conditions::DUPLICATE).unwrap();
        assert_eq!(
            (raised.message.as_str(), raised.observed_generation),
            ("a is held", Some(3))
        );
        catalogue.status = Some(status);
        let later = Timestamp::from_second(1_800_000_060).unwrap();
        assert_eq!(marked(&catalogue, Some("a is held"), later), None);
        assert!(marked(&catalogue, Some("b is held"), later).is_some());
        catalogue.status = marked(&catalogue, None, later);
        let status = catalogue.status.as_ref().unwrap();
        assert_eq!(
            conditions::raised(&status.conditions, conditions::DUPLICATE),
            None
        );
        assert_eq!(marked(&catalogue, None, now), None);
    }
}
