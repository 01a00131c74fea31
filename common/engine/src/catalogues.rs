//! Reads, writes and deletes the catalogues of a cluster.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::json;

use common::api::catalogue::{
    AddonCatalogue, AddonCatalogueSpec, AddonCatalogueStatus, SyncedRevision,
};
use common::api::{conditions, names};
use common::entrance::{self, MAX_STORED_DEPTH};

use super::address::Collection;
use super::cluster::Cluster;
use super::delete;
use super::error::EngineError;
use super::listing;
use super::request::{self, APPLY_PATCH, ApiCall, JSON};
use super::status;

/// Maximum number of times that a status is written if another client is faster.
const ATTEMPTS: u32 = 5;

/// The result of writing a catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CatalogueWrite {
    /// It did not exist.
    Created,
    /// Its content was different.
    Replaced,
    /// It was up to date.
    Unchanged,
}

/// Returns all catalogues of a namespace. One that cannot be read is reduced to its names ([`AddonCatalogue::read`]). The error is
/// [`EngineError::NotInitialised`] if our CRDs are missing.
///
/// # Errors
/// Those of the requests.
pub async fn list(cluster: &Cluster, namespace: &str) -> Result<Vec<AddonCatalogue>, EngineError> {
    let list = ApiCall::list(&collection(namespace), JSON);
    listing::list_pages(cluster.home(), list, AddonCatalogue::read).await
}

/// Parses the catalogue in a response.
fn parse_answer(bytes: &[u8]) -> Result<AddonCatalogue, String> {
    let read = String::from_utf8_lossy(bytes);
    AddonCatalogue::read(&read)
        .map_err(|error| entrance::describe_refusal(bytes, &error, MAX_STORED_DEPTH))
}

/// Creates a catalogue, or replaces the spec of an existing one, whose labels and annotations stay.
///
/// # Errors
/// Those of the requests; [`EngineError::Denied`] if admission denies it.
pub async fn put(
    cluster: &Cluster,
    wanted: &AddonCatalogue,
) -> Result<CatalogueWrite, EngineError> {
    let namespace = wanted
        .metadata
        .namespace
        .as_deref()
        .unwrap_or(names::SYSTEM_NAMESPACE);
    let name = wanted.metadata.name.as_deref().unwrap_or_default();
    let collection = collection(namespace);
    let call = ApiCall::get(&collection, name, JSON);
    let live = request::if_found(cluster.home().exchange(call, parse_answer).await)?;
    let (call, object, written) = match live {
        None => (
            ApiCall::create(&collection, name, JSON),
            wanted.clone(),
            CatalogueWrite::Created,
        ),
        Some(live) if live.spec == wanted.spec => return Ok(CatalogueWrite::Unchanged),
        Some(mut live) => {
            live.spec = wanted.spec.clone();
            (
                ApiCall::replace(&collection, name, JSON),
                live,
                CatalogueWrite::Replaced,
            )
        }
    };
    let body = body(&object, &collection, name)?;
    let call = call.query("fieldManager", names::CLIENT).body(body);
    cluster.home().send::<IgnoredAny>(call).await?;
    Ok(written)
}

/// Reads a catalogue; `None` if it does not exist.
///
/// # Errors
/// Those of the request.
pub async fn get(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<AddonCatalogue>, EngineError> {
    let call = ApiCall::get(&collection(namespace), name, JSON).with_own_rights();
    request::if_found(cluster.home().exchange(call, parse_answer).await)
}

/// Writes a copy by server-side apply, because the API server then knows its name also where it does not exist yet, and a role can limit
/// the right to this name. `live` is the copy that was read before.
///
/// # Errors
/// Those of the request; a conflict if another client wrote the copy meanwhile; [`EngineError::Denied`] if admission denies it.
pub async fn put_named(
    cluster: &Cluster,
    live: Option<&AddonCatalogue>,
    wanted: &AddonCatalogue,
) -> Result<CatalogueWrite, EngineError> {
    let mut object = wanted.clone();
    let written = match live {
        Some(live) if live.spec == wanted.spec => return Ok(CatalogueWrite::Unchanged),
        Some(live) => {
            let version = &live.metadata.resource_version;
            object.metadata.resource_version.clone_from(version);
            CatalogueWrite::Replaced
        }
        None => CatalogueWrite::Created,
    };
    let (collection, name) = locate(wanted);
    let body = body(&object, &collection, name)?;
    let call = ApiCall::patch(&collection, name, APPLY_PATCH, JSON)
        .with_own_rights()
        .query("fieldManager", names::CLIENT)
        .query("force", "true")
        .body(body);
    cluster.home().send::<IgnoredAny>(call).await?;
    Ok(written)
}

/// Deletes the catalogue that was read before, and no other one with its name. Returns `false` if none exists any more. With `dry_run`, the
/// server only says whether it would.
///
/// # Errors
/// Those of the request; a conflict if another client created it again; [`EngineError::Denied`] if admission denies it.
pub async fn delete(
    cluster: &Cluster,
    known: &AddonCatalogue,
    dry_run: bool,
) -> Result<bool, EngineError> {
    let mut options = delete::delete_options(json!({"uid": known.metadata.uid}), None);
    if dry_run {
        delete::set_dry_run(&mut options);
    }
    let (collection, name) = locate(known);
    let call = ApiCall::delete(&collection, name).body(options.to_string().into_bytes());
    match cluster.home().send::<IgnoredAny>(call).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Records in the status of a catalogue which of its entries another catalogue holds; `None` = none. Returns whether the status was
/// written. It is not if it already says so, or if another client was faster.
///
/// # Errors
/// Those of the request.
pub async fn record_duplicates(
    cluster: &Cluster,
    known: &AddonCatalogue,
    lost: Option<&str>,
) -> Result<bool, EngineError> {
    let Some(status) = duplicate_status(known, lost, cluster.home().now()) else {
        return Ok(false);
    };
    match write_status(cluster, known, status).await {
        Ok(()) => Ok(true),
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Replaces the spec of a catalogue that was read before, and returns the stored object.
///
/// # Errors
/// Those of the request; a conflict if another client was faster.
pub async fn replace(
    cluster: &Cluster,
    known: &AddonCatalogue,
    spec: AddonCatalogueSpec,
) -> Result<AddonCatalogue, EngineError> {
    let mut object = known.clone();
    object.spec = spec;
    let (collection, name) = locate(known);
    let body = body(&object, &collection, name)?;
    let call = ApiCall::replace(&collection, name, JSON)
        .query("fieldManager", names::CLIENT)
        .body(body);
    Ok(cluster.home().exchange(call, parse_answer).await?.object)
}

/// Records in the status of a catalogue that its add-ons are those of a revision of `spec.from`, or why they are not. Returns whether the
/// status was written; it is not if it already says so.
///
/// # Errors
/// Those of the requests.
pub async fn record_sync(
    cluster: &Cluster,
    known: &AddonCatalogue,
    read: &Result<String, SyncFailure>,
) -> Result<bool, EngineError> {
    let mut known = known.clone();
    for attempt in 1.. {
        let Some(status) = synced_status(&known, read, cluster.home().now()) else {
            return Ok(false);
        };
        match write_status(cluster, &known, status).await {
            Ok(()) => break,
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => {
                let (collection, name) = locate(&known);
                let call = ApiCall::get(&collection, name, JSON);
                known = cluster.home().exchange(call, parse_answer).await?.object;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Why the add-ons of a catalogue are not those of `spec.from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncFailure {
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// Returns the status with the condition `Synced`; `None` if nothing would change.
fn synced_status(
    known: &AddonCatalogue,
    read: &Result<String, SyncFailure>,
    now: Timestamp,
) -> Option<AddonCatalogueStatus> {
    let before = known.status.clone().unwrap_or_default();
    let generation = known.metadata.generation;
    let mut after = before.clone();
    let (status, reason, message) = match read {
        Ok(_) => ("True", "UpToDate", String::new()),
        Err(why) => ("False", why.reason, why.message.clone()),
    };
    let mut condition = status::new_condition(conditions::SYNCED, status, reason, message, now);
    condition.observed_generation = generation;
    conditions::set(&mut after.conditions, condition);
    if let Ok(revision) = read {
        let known = after.synced.take().filter(|it| it.revision == *revision);
        after.synced = Some(known.unwrap_or_else(|| SyncedRevision {
            revision: revision.clone(),
            at: Time(now),
        }));
    }
    if before == after {
        return None;
    }
    after.observed_generation = generation;
    Some(after)
}

async fn write_status(
    cluster: &Cluster,
    known: &AddonCatalogue,
    status: AddonCatalogueStatus,
) -> Result<(), EngineError> {
    let mut object = known.clone();
    object.status = Some(status);
    let (collection, name) = locate(known);
    let body = body(&object, &collection, name)?;
    let call = ApiCall::replace(&collection, name, JSON)
        .subresource("status")
        .query("fieldManager", names::CLIENT)
        .body(body);
    cluster.home().send::<IgnoredAny>(call).await.map(drop)
}

/// Returns the collection and the name of a catalogue.
fn locate(known: &AddonCatalogue) -> (Collection, &str) {
    let namespace = known.metadata.namespace.as_deref().unwrap_or_default();
    let name = known.metadata.name.as_deref().unwrap_or_default();
    (collection(namespace), name)
}

fn body(
    object: &AddonCatalogue,
    collection: &Collection,
    name: &str,
) -> Result<Vec<u8>, EngineError> {
    serde_json::to_vec(object).map_err(|error| EngineError::Api {
        what: collection.describe_object(name),
        message: error.to_string(),
        code: 0,
    })
}

/// Returns the status with the condition `Duplicate`; `None` if nothing would change.
fn duplicate_status(
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
            let mut raised =
                status::new_condition(duplicate, "True", reason, message.to_owned(), now);
            raised.observed_generation = generation;
            conditions::set(all, raised);
        }
        None => status::lower_condition(all, conditions::DUPLICATE, "Unique", generation, now),
    }
    if before.conditions == after.conditions {
        return None;
    }
    after.observed_generation = generation;
    Some(after)
}

fn collection(namespace: &str) -> Collection {
    Collection::from_names(
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
        assert_eq!(duplicate_status(&catalogue, None, now), None);
        let status = duplicate_status(&catalogue, Some("a is held"), now).unwrap();
        let raised = conditions::find_raised(&status.conditions, conditions::DUPLICATE).unwrap();
        assert_eq!(
            (raised.message.as_str(), raised.observed_generation),
            ("a is held", Some(3))
        );
        catalogue.status = Some(status);
        let later = Timestamp::from_second(1_800_000_060).unwrap();
        assert_eq!(duplicate_status(&catalogue, Some("a is held"), later), None);
        assert!(duplicate_status(&catalogue, Some("b is held"), later).is_some());
        catalogue.status = duplicate_status(&catalogue, None, later);
        let status = catalogue.status.as_ref().unwrap();
        assert_eq!(
            conditions::find_raised(&status.conditions, conditions::DUPLICATE),
            None
        );
        assert_eq!(duplicate_status(&catalogue, None, now), None);
    }
}
