//! The target namespace: created before the first object, and deleted after the last one if it is certain that only this installation uses
//! it (semantics 7.2).

mod leftovers;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::ResourceExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use addons_plan::prune::{PruneObstacle, keep};
use addons_plan::readiness::{Readiness, ReadinessStatus};
use common::api::installation::{
    AddonInstallation, AddonInstallationStatus, CreatedNamespace, InventoryGroup, namespaces,
};
use common::api::names;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::pin;

use super::cluster::Cluster;
use super::delete::{Deleted, DeletionTarget, Propagation, delete};
use super::error::EngineError;
use super::event::Event;
use super::meta::{LiveMetadata, PartialObject};
use super::report::{Report, StepEnd};
use super::request::{ApiCall, MERGE_PATCH, METADATA};
use super::snapshot::{namespace_collection, read_one};
use super::wait::change_reporter;
use super::{create, record};

const PAUSE: Duration = Duration::from_secs(1);
/// Returns the key of a namespace.
pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey {
        kind: "Namespace".to_owned(),
        name: name.to_owned(),
        ..ObjectKey::default()
    }
}

/// Reads the annotations of a namespace; empty if it does not exist. One GET.
///
/// # Errors
/// Those of the request.
pub async fn annotations(
    cluster: &Cluster,
    name: &str,
) -> Result<BTreeMap<String, String>, EngineError> {
    let found = read_one(cluster, &namespace_collection(), name).await?;
    Ok(found.map(|found| found.annotations).unwrap_or_default())
}

/// Labels an existing namespace as one that holds core installations, which guards its deletion (semantics 14.2).
///
/// # Errors
/// Those of the request.
pub async fn label_holds_core(cluster: &Cluster, name: &str) -> Result<(), EngineError> {
    set_core_label(cluster, name, &json!("true")).await
}

/// Sets or removes the label with our own rights, because the account that writes the objects is not in the core group.
async fn set_core_label(cluster: &Cluster, name: &str, value: &Value) -> Result<(), EngineError> {
    let marked = json!({"metadata": {"labels": {names::LABEL_HOLDS_CORE: value}}});
    let call = ApiCall::patch(&namespace_collection(), name, MERGE_PATCH, METADATA)
        .with_own_rights()
        .query("fieldManager", names::CLIENT)
        .body(marked.to_string().into_bytes());
    cluster.send::<PartialObject>(call).await.map(|_| ())
}

/// Labels every namespace of a core installation that lacks the label: that of its record, its target, and those of its objects (semantics
/// 14.2). Returns whether all of them exist. A failure is only a warning, because the add-on is more important than the label.
pub(super) async fn label_core_namespaces(
    cluster: &Cluster,
    wanted: &AddonInstallation,
    inventory: &[InventoryGroup],
    events: &(dyn Fn(Event) + Send + Sync),
) -> bool {
    let home = wanted.namespace().unwrap_or_default();
    let mut there: BTreeSet<&str> = namespaces(inventory).collect();
    there.extend(wanted.spec.target_namespace.as_deref());
    if !cluster.is_remote() {
        there.remove(home.as_str());
    }
    let there = there.into_iter().map(|name| (cluster, name));
    let mut are_there = true;
    for (cluster, name) in there.chain([(cluster.home(), home.as_str())]) {
        match label_core_namespace(cluster, name).await {
            Ok(is_there) => are_there &= is_there,
            Err(error) => (events)(Event::Warning {
                key: key(name),
                message: format!("its deletion is not denied while no webhook answers: {error}"),
            }),
        }
    }
    are_there
}

/// Labels a namespace if it exists and lacks the label. Returns whether it exists.
async fn label_core_namespace(cluster: &Cluster, name: &str) -> Result<bool, EngineError> {
    let call = ApiCall::get(&namespace_collection(), name, METADATA).with_own_rights();
    let found = match cluster.send::<PartialObject>(call).await {
        Ok(answer) => answer.object.metadata,
        Err(error) if error.is_not_found() => return Ok(false),
        Err(error) => return Err(error),
    };
    if !found.labels.contains_key(names::LABEL_HOLDS_CORE) {
        label_holds_core(cluster, name).await?;
    }
    Ok(true)
}

/// Creates the target namespace with our marks. Returns its uid if it is ours, `None` if another client was faster. Waits until `deadline`
/// for a former namespace that is being deleted.
pub(super) async fn create(
    cluster: &Cluster,
    name: &str,
    installation: &InstallationName,
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Result<Option<String>, EngineError> {
    let owner = names::owner_hash(&installation.namespace, &installation.name);
    let object = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {names::LABEL_OWNER: owner},
            "annotations": {names::ANNOTATION_INSTALLATION: installation.to_string()},
        },
    });
    let report = change_reporter(events);
    loop {
        if let Some(created) = post(cluster, name, &object).await? {
            return Ok(Some(created.uid));
        }
        match read_one(cluster, &namespace_collection(), name).await? {
            // An earlier try of ours may have created it, whose response was lost.
            Some(found) if found.deletion_timestamp.is_none() => {
                let ours = found.labels.get(names::LABEL_OWNER) == Some(&owner);
                return Ok(ours.then_some(found.uid));
            }
            Some(_) if Instant::now() + PAUSE > deadline => {
                return Err(EngineError::Api {
                    what: key(name).to_string(),
                    message: "it is still being deleted; look at: kubectl get namespace -o yaml"
                        .to_owned(),
                    code: 409,
                });
            }
            Some(_) => {
                let readiness = Readiness {
                    status: ReadinessStatus::Terminating,
                    message: "an earlier namespace of this name is still being deleted".to_owned(),
                };
                report(&key(name), &readiness);
                sleep(PAUSE).await;
            }
            None => {}
        }
    }
}

/// Completes the status after an operation that was interrupted right after it created the namespace: our label shows that it was created
/// for us, and its uid is recorded.
pub(super) async fn complete_created_namespace(
    cluster: &Cluster,
    installation: &InstallationName,
    status: &mut AddonInstallationStatus,
) -> Result<(), EngineError> {
    let planned = status.created_namespace.as_mut();
    let Some(planned) = planned.filter(|planned| planned.uid.is_empty()) else {
        return Ok(());
    };
    let owner = names::owner_hash(&installation.namespace, &installation.name);
    let found = read_one(cluster, &namespace_collection(), &planned.name).await?;
    match found.filter(|found| found.labels.get(names::LABEL_OWNER) == Some(&owner)) {
        Some(ours) => planned.uid = ours.uid,
        None => status.created_namespace = None,
    }
    Ok(())
}

/// Creates a namespace by POST; `None` if it exists.
pub(super) async fn post(
    cluster: &Cluster,
    name: &str,
    object: &serde_json::Value,
) -> Result<Option<LiveMetadata>, EngineError> {
    let call = ApiCall::create(&namespace_collection(), name, METADATA)
        .query("fieldManager", names::CLIENT)
        .body(object.to_string().into_bytes());
    let created =
        create::create::<PartialObject>(cluster, &namespace_collection(), name, call).await?;
    Ok(created.map(|created| created.metadata))
}

/// The result of removing a namespace that we created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamespaceRemoval {
    /// It was deleted, or is being deleted.
    Removed,
    /// It stays, with the reason.
    Kept(String),
}

/// Deletes the namespace that the installation created, unless another installation uses it or other objects are left in it. Dependents of
/// the objects that were just deleted (`deleted`: their uids) do not count, so pods of a Deployment need not be waited for. Objects that
/// have lost their owner are deleted soon, and are checked again until `deadline`.
pub(super) async fn remove(
    cluster: &Cluster,
    created: &CreatedNamespace,
    record: &AddonInstallation,
    deleted: BTreeSet<String>,
    deadline: Instant,
) -> Result<NamespaceRemoval, EngineError> {
    let name = &created.name;
    let namespace = record.namespace().unwrap_or_default();
    let collection = namespace_collection();
    let Some(found) = read_one(cluster, &collection, name).await? else {
        return Ok(NamespaceRemoval::Removed);
    };
    let owner = names::owner_hash(&namespace, &record.name_any());
    // The record alone is not sufficient: whoever may write it could name any namespace.
    let judge = |found: &LiveMetadata| {
        let is_labelled = found.labels.get(names::LABEL_OWNER) == Some(&owner);
        let is_it = created.uid.is_empty() || created.uid == found.uid;
        if !is_labelled || !is_it {
            return Some(PruneObstacle::Kept("another client created it".to_owned()));
        }
        let mark = keep::mark(&found.annotations)?;
        Some(PruneObstacle::Kept(format!("it carries {mark}")))
    };
    if let Some(obstacle) = judge(&found) {
        return Ok(NamespaceRemoval::Kept(obstacle.why().to_owned()));
    }
    if *name == namespace && !cluster.is_remote() {
        let why = "it holds the record of the installation";
        return Ok(NamespaceRemoval::Kept(why.to_owned()));
    }
    if let Some(user) = find_other_user(cluster, name, record).await? {
        return Ok(NamespaceRemoval::Kept(format!(
            "{user} is installed into it"
        )));
    }
    let stays = match leftovers::find_staying(cluster, name, &deleted, deadline).await {
        // Objects that cannot be read must not be deleted with it.
        Err(error) if error.is_read_refusal() || error.is_unserved() => {
            return Ok(NamespaceRemoval::Kept(error.to_string()));
        }
        stays => stays?,
    };
    if !stays.is_empty() {
        return Ok(NamespaceRemoval::Kept(leftovers::describe_staying(&stays)));
    }
    // Its deletion is denied while it has the label.
    if found.labels.contains_key(names::LABEL_HOLDS_CORE) {
        set_core_label(cluster, name, &json!(null)).await?;
    }
    let doomed = DeletionTarget {
        collection: &collection,
        name,
        uid: &found.uid,
        judged: &found.resource_version,
        propagation: Propagation::Background,
    };
    Ok(match delete(cluster, doomed, judge).await? {
        Deleted::Left(PruneObstacle::Kept(why)) => NamespaceRemoval::Kept(why),
        Deleted::Gone | Deleted::Held(_) | Deleted::Left(PruneObstacle::Foreign(_)) => {
            NamespaceRemoval::Removed
        }
    })
}

/// Reports the result for a namespace. An empty one that stays for good does not keep the record.
pub(super) fn report_removal(
    key: ObjectKey,
    removal: Result<NamespaceRemoval, EngineError>,
    report: &mut Report,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Result<(), EngineError> {
    let why = match removal {
        Ok(NamespaceRemoval::Removed) => {
            report.note(key, StepEnd::Deleted);
            return Ok(());
        }
        Ok(NamespaceRemoval::Kept(why)) => why,
        Err(error @ (EngineError::Denied { .. } | EngineError::Forbidden { .. })) => {
            error.to_string()
        }
        Err(error) => return Err(error),
    };
    (events)(Event::Warning {
        key: key.clone(),
        message: format!("the namespace stays: {why}"),
    });
    report.note(key, StepEnd::Retained);
    Ok(())
}

/// Removes the namespace of an uninstalled installation that was left because other installations of the same command were in it. Its
/// record is already deleted. `deleted`: the uids of everything that the command deleted.
///
/// # Errors
/// Those of the requests.
pub async fn remove_leftover(
    cluster: &Cluster,
    record: &AddonInstallation,
    deleted: BTreeSet<String>,
    timeout: Duration,
    report: &mut Report,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Result<(), EngineError> {
    let status = record.status.as_ref();
    let Some(created) = status.and_then(|status| status.created_namespace.as_ref()) else {
        return Ok(());
    };
    let deadline = Instant::now() + timeout;
    let removal = remove(cluster, created, record, deleted, deadline).await;
    report_removal(key(&created.name), removal, report, events)
}

/// Returns whether an installation uses a namespace: for its record, as its target or for an object.
#[must_use]
pub fn is_used_by(name: &str, installation: &AddonInstallation) -> bool {
    let inventory = installation
        .status
        .iter()
        .flat_map(|status| &status.inventory);
    is_record_or_target(name, installation)
        || inventory
            .into_iter()
            .any(|group| group.namespace.as_deref() == Some(name))
}

/// Returns whether an installation has its record or its target in a namespace.
fn is_record_or_target(name: &str, installation: &AddonInstallation) -> bool {
    installation.spec.target_namespace.as_deref() == Some(name)
        || installation.namespace().as_deref() == Some(name)
}

/// Returns another installation of this cluster whose record or target is in a namespace. Its inventory does not count, because a record
/// can name any object; live objects are searched instead.
async fn find_other_user(
    cluster: &Cluster,
    name: &str,
    record: &AddonInstallation,
) -> Result<Option<String>, EngineError> {
    let installations = record::list(cluster, None).await?;
    let is_here = |other: &&AddonInstallation| {
        if cluster.is_remote() {
            other.namespace() == record.namespace()
        } else {
            !pin::is_in_other_cluster(other)
        }
    };
    Ok(installations
        .iter()
        .filter(|other| other.uid() != record.uid())
        .filter(is_here)
        .find(|other| is_record_or_target(name, other))
        .map(|other| record::name(other).to_string()))
}

#[cfg(test)]
mod tests;
