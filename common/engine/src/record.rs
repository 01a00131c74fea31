//! Reads and writes the record of an installation: lock, journal and inventory in one write (semantics 13.2).
//!
//! `create` and `replace` write the spec. Only `put_status` writes the status: one PUT of the whole object with its resourceVersion, never
//! a patch, never server-side apply (semantics 13.1).

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use serde::Serialize;
use serde_json::json;

use addons_plan::gitops::keep_spec_writers;
use common::api::installation::core_guard::is_released;
use common::api::installation::{
    AddonInstallation, AddonInstallationSpec, AddonInstallationStatus, format,
};
use common::api::names::{
    self, FINALIZER_CORE_GUARD, FINALIZER_UNINSTALL, GROUP, InstallationName,
};
use common::entrance::{self, MAX_STORED_DEPTH};
use common::manifest::key::ObjectKey;

use super::address::Collection;
use super::cluster::Cluster;
use super::delete::{self, Propagation};
use super::error::EngineError;
use super::listing;
use super::meta::PartialObject;
use super::request::{self, ApiCall, JSON, MERGE_PATCH, METADATA};
use super::snapshot::read_selected;

/// The kind of a record.
const KIND: &str = "AddonInstallation";

/// Returns the key of a record.
#[must_use]
pub fn key(installation: &InstallationName) -> ObjectKey {
    ObjectKey {
        group: GROUP.to_owned(),
        kind: KIND.to_owned(),
        namespace: Some(installation.namespace.clone()),
        name: installation.name.clone(),
    }
}

/// Reads one installation; `None` if it does not exist. The error is [`EngineError::NotInitialised`] if our CRDs are missing.
///
/// # Errors
/// Those of the request.
pub async fn get(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<AddonInstallation>, EngineError> {
    let call = ApiCall::get(&collection(Some(namespace)), name, JSON)
        .urgent()
        .with_own_rights();
    request::if_found(cluster.home().exchange(call, parse_answer).await)
}

/// Returns the values of the owner label of installations that are recorded in this very cluster, even if its own records are elsewhere: of
/// one installation, or of all. `None` if they may not be read; empty without our CRDs.
///
/// # Errors
/// Those of the requests.
pub async fn list_owners(
    cluster: &Cluster,
    only: Option<&InstallationName>,
) -> Result<Option<BTreeSet<String>>, EngineError> {
    let read = match only {
        Some(name) => {
            let collection = collection(Some(&name.namespace));
            let call = ApiCall::get(&collection, &name.name, METADATA).with_own_rights();
            let answer = cluster.send::<PartialObject>(call).await;
            answer.map(|answer| vec![answer.object.metadata])
        }
        None => {
            let found = read_selected(cluster, &collection(None), &[]).await;
            found.map(Option::unwrap_or_default)
        }
    };
    let found = match read {
        Ok(found) => found,
        Err(EngineError::NotInitialised) => Vec::new(),
        Err(EngineError::Forbidden { .. }) => return Ok(None),
        Err(error) if error.is_not_found() => Vec::new(),
        Err(error) => return Err(error),
    };
    let owners = found.into_iter().map(|record| {
        let namespace = record.namespace.unwrap_or_default();
        names::owner_hash(&namespace, &record.name)
    });
    Ok(Some(owners.collect()))
}

/// Returns all installations of one namespace, or of all. Their managedFields only contain the writers of spec and metadata. Fields that
/// cannot be read are missing ([`AddonInstallation::read`]).
///
/// # Errors
/// Those of the requests.
pub async fn list(
    cluster: &Cluster,
    namespace: Option<&str>,
) -> Result<Vec<AddonInstallation>, EngineError> {
    let list = ApiCall::list(&collection(namespace), JSON);
    listing::list_pages(cluster.home(), list, parse_listed).await
}

/// Returns the installations of one namespace, or of all, whose labels match a selector, with one LIST.
///
/// # Errors
/// Those of the request, including that for a malformed selector.
pub async fn list_labelled(
    cluster: &Cluster,
    namespace: Option<&str>,
    selector: &str,
) -> Result<BTreeSet<InstallationName>, EngineError> {
    let selectors = [("labelSelector", selector)];
    let found = read_selected(cluster.home(), &collection(namespace), &selectors).await?;
    let names = found.into_iter().flatten().map(|one| InstallationName {
        namespace: one.namespace.unwrap_or_default(),
        name: one.name,
    });
    Ok(names.collect())
}

/// Parses a record of a list. Of its managedFields, half of its size, only the writers of the spec are kept.
fn parse_listed(text: &str) -> Result<AddonInstallation, serde_json::Error> {
    let mut record = AddonInstallation::read(text)?;
    if let Some(managers) = &mut record.metadata.managed_fields {
        keep_spec_writers(managers);
    }
    Ok(record)
}

/// Parses the record in a response.
fn parse_answer(bytes: &[u8]) -> Result<AddonInstallation, String> {
    let read = String::from_utf8_lossy(bytes);
    AddonInstallation::read(&read)
        .map_err(|error| entrance::describe_refusal(bytes, &error, MAX_STORED_DEPTH))
}

/// Creates a record (spec and metadata) and returns it as the server completed it; `None` if one exists.
///
/// # Errors
/// Those of the request.
pub async fn create(
    cluster: &Cluster,
    wanted: &AddonInstallation,
) -> Result<Option<AddonInstallation>, EngineError> {
    let mut fresh = wanted.clone();
    fresh.status = None;
    let namespace = wanted.namespace().unwrap_or_default();
    let collection = collection(Some(&namespace));
    let name = wanted.name_any();
    let call = ApiCall::create(&collection, &name, JSON)
        .with_own_rights()
        .query("fieldValidation", "Strict")
        .query("fieldManager", names::CLIENT)
        .body(body(&fresh)?);
    super::create::create(cluster.home(), &collection, &name, call).await
}

/// Writes spec and metadata of a record under its resourceVersion, and returns it as the server completed it.
///
/// # Errors
/// Those of the request; a conflict if the record was written meanwhile.
pub async fn replace(
    cluster: &Cluster,
    wanted: &AddonInstallation,
) -> Result<AddonInstallation, EngineError> {
    format::check(wanted)?;
    let namespace = wanted.namespace().unwrap_or_default();
    let call = ApiCall::replace(&collection(Some(&namespace)), &wanted.name_any(), JSON)
        .with_own_rights()
        .query("fieldValidation", "Strict")
        .query("fieldManager", names::CLIENT)
        .body(body(wanted)?);
    Ok(cluster.home().exchange(call, parse_answer).await?.object)
}

/// Writes annotations, finalizers and owner references of a record under its resourceVersion, and returns it as the server completed it. If
/// the record cannot be read as a whole, only these are sent, because the rest would be lost.
pub(super) async fn put_metadata(
    cluster: &Cluster,
    wanted: &AddonInstallation,
) -> Result<AddonInstallation, EngineError> {
    if wanted.spec.unreadable.is_none() {
        return replace(cluster, wanted).await;
    }
    format::check_status(wanted)?;
    let namespace = wanted.namespace().unwrap_or_default();
    let metadata = json!({
        "annotations": wanted.annotations(),
        "finalizers": wanted.finalizers(),
        "ownerReferences": wanted.owner_references(),
        "resourceVersion": wanted.resource_version(),
    });
    let body = json!({"metadata": metadata}).to_string();
    let collection = collection(Some(&namespace));
    let call = ApiCall::patch(&collection, &wanted.name_any(), MERGE_PATCH, JSON)
        .with_own_rights()
        .query("fieldManager", names::CLIENT)
        .body(body.into_bytes());
    Ok(cluster.home().exchange(call, parse_answer).await?.object)
}

/// Writes a status; no other function does. It sends the whole object with its resourceVersion, which is then updated from the response.
pub(super) async fn put_status(
    cluster: &Cluster,
    record: &mut AddonInstallation,
) -> Result<(), EngineError> {
    format::check_status(record)?;
    let namespace = record.namespace().unwrap_or_default();
    let call = ApiCall::replace(&collection(Some(&namespace)), &record.name_any(), METADATA)
        .subresource("status")
        .query("fieldValidation", "Strict")
        .query("fieldManager", names::CLIENT)
        .body(body(record)?)
        .urgent()
        .with_own_rights();
    let answer = cluster.home().send::<PartialObject>(call).await?;
    record.metadata.resource_version = Some(answer.object.metadata.resource_version);
    Ok(())
}

/// Deletes a record if it still has this uid and resourceVersion; a missing one counts as deleted.
///
/// # Errors
/// Those of the request; a conflict if the record was written meanwhile.
pub async fn delete(
    cluster: &Cluster,
    record: &AddonInstallation,
    dry_run: bool,
) -> Result<(), EngineError> {
    format::check_status(record)?;
    let namespace = record.namespace().unwrap_or_default();
    let mut preconditions = json!({"uid": record.uid()});
    if !dry_run {
        preconditions["resourceVersion"] = json!(record.resource_version());
    }
    let mut options = delete::delete_options(preconditions, Some(Propagation::Background));
    if dry_run {
        delete::set_dry_run(&mut options);
    }
    let call = ApiCall::delete(&collection(Some(&namespace)), &record.name_any())
        .with_own_rights()
        .body(options.to_string().into_bytes());
    match cluster.home().send::<serde::de::IgnoredAny>(call).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Adds our finalizer, with which a reconciler completes the deletion of a record. Returns the new record.
///
/// # Errors
/// Those of the request; a conflict if the record was written meanwhile.
pub async fn add_finalizer(
    cluster: &Cluster,
    record: &AddonInstallation,
) -> Result<AddonInstallation, EngineError> {
    let mut finalizers = record.finalizers().iter();
    if finalizers.any(|finalizer| finalizer == FINALIZER_UNINSTALL) {
        return Ok(record.clone());
    }
    let mut held = record.clone();
    held.finalizers_mut().push(FINALIZER_UNINSTALL.to_owned());
    put_metadata(cluster, &held).await
}

/// Removes our finalizer, so that deleting the record leaves its objects. Returns whether it had one.
///
/// # Errors
/// Those of the request; a conflict if the record was written meanwhile.
pub async fn remove_finalizer(
    cluster: &Cluster,
    record: &AddonInstallation,
) -> Result<bool, EngineError> {
    match without_finalizer(record) {
        Some(free) => put_metadata(cluster, &free).await.map(|_| true),
        None => Ok(false),
    }
}

/// Returns the record without our finalizer (semantics 15) and, if it is a released core installation, without its guard; `None` if it has
/// neither.
pub(super) fn without_finalizer(record: &AddonInstallation) -> Option<AddonInstallation> {
    let is_released = is_released(record);
    let is_ours = |finalizer: &String| {
        finalizer == FINALIZER_UNINSTALL || is_released && finalizer == FINALIZER_CORE_GUARD
    };
    record.finalizers().iter().any(is_ours).then(|| {
        let mut released = record.clone();
        released.finalizers_mut().retain(|one| !is_ours(one));
        released
    })
}

/// Returns namespace and name of a record; errors use its Display.
pub(super) fn name(record: &AddonInstallation) -> InstallationName {
    InstallationName {
        namespace: record.namespace().unwrap_or_default(),
        name: record.name_any(),
    }
}

/// Returns the collection of records in a namespace, or in all.
pub(super) fn collection(namespace: Option<&str>) -> Collection {
    Collection::from_names(names::API_VERSION, KIND, "addoninstallations", namespace)
}

/// Serializes a record without managedFields, which the API server then leaves unchanged. The status, which can be large, is not copied for
/// that.
fn body(record: &AddonInstallation) -> Result<Vec<u8>, EngineError> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct RecordBody<'a> {
        api_version: &'a str,
        kind: &'a str,
        metadata: ObjectMeta,
        spec: &'a AddonInstallationSpec,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'a AddonInstallationStatus>,
    }
    let mut metadata = record.metadata.clone();
    metadata.managed_fields = None;
    let sent = RecordBody {
        api_version: names::API_VERSION,
        kind: KIND,
        metadata,
        spec: &record.spec,
        status: record.status.as_ref(),
    };
    serde_json::to_vec(&sent).map_err(|error| EngineError::Api {
        what: name(record).to_string(),
        message: error.to_string(),
        code: 0,
    })
}
