//! The target namespace: created before the first object, removed after the last one where it is surely only ours
//! (semantics 7).

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use kube::ResourceExt as _;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::api::installation::{AddonInstallation, CreatedNamespace};
use crate::api::names;
use crate::manifest::key::{Gvk, ObjectKey};
use crate::plan::InstallationName;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::meta::{Metadata, Partial, PartialList};
use super::request::{Call, METADATA, METADATA_LIST};
use super::snapshot::{namespace_collection, read_one};
use super::{prune, record};

const PAUSE: Duration = Duration::from_secs(1);
/// Enough to see one object more than what every namespace has.
const LOOKED_AT: &str = "10";
/// What every namespace has, and what controllers take away by themselves.
const HARMLESS: &[(&str, &str, Option<&str>)] = &[
    ("", "ConfigMap", Some("kube-root-ca.crt")),
    ("", "ServiceAccount", Some("default")),
    ("", "Event", None),
    ("events.k8s.io", "Event", None),
    ("", "Endpoints", None),
];

/// Key of a namespace.
pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey {
        kind: "Namespace".to_owned(),
        name: name.to_owned(),
        ..ObjectKey::default()
    }
}

/// Makes sure that a namespace is there that is not part of any add-on (the one that holds the records).
///
/// # Errors
/// Those of the request.
pub async fn ensure(cluster: &Cluster, name: &str) -> Result<(), EngineError> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    post(cluster, name, &object).await.map(|_| ())
}

/// Creates the target namespace with our marks. Its uid where it is ours; `None` where somebody else was faster. One that
/// is being deleted is waited for until `deadline`.
pub(super) async fn create(
    cluster: &Cluster,
    name: &str,
    installation: &InstallationName,
    deadline: Instant,
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
    loop {
        if let Some(created) = post(cluster, name, &object).await? {
            return Ok(Some(created.uid));
        }
        match read_one(cluster, &namespace_collection(), name).await? {
            // Ours from an earlier try whose answer was lost.
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
            Some(_) => sleep(PAUSE).await,
            None => {}
        }
    }
}

/// Posts a namespace; `None` where there is one.
async fn post(
    cluster: &Cluster,
    name: &str,
    object: &serde_json::Value,
) -> Result<Option<Metadata>, EngineError> {
    let call = Call::create(&namespace_collection(), name, METADATA)
        .query("fieldManager", names::CLIENT)
        .body(object.to_string().into_bytes());
    match cluster.send::<Partial>(call).await {
        Ok(answer) => Ok(Some(answer.object.metadata)),
        Err(error) if error.is_conflict() => Ok(None),
        // The answer was lost: whether it is there and ours is looked at.
        Err(error) if error.is_uncertain() => {
            match read_one(cluster, &namespace_collection(), name).await? {
                Some(_) => Ok(None),
                None => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

/// What became of a namespace that we created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// It is gone or going.
    Removed,
    /// It stays, and why.
    Kept(String),
}

/// Removes the namespace that we created, where nobody else uses it and nothing foreign is left in it. What is on its way
/// out is waited for until `deadline` (`None` = one look).
pub(super) async fn remove(
    cluster: &Cluster,
    created: &CreatedNamespace,
    record: &AddonInstallation,
    deadline: Option<Instant>,
) -> Result<Removal, EngineError> {
    let name = &created.name;
    let namespace = record.namespace().unwrap_or_default();
    let collection = namespace_collection();
    let Some(found) = read_one(cluster, &collection, name).await? else {
        return Ok(Removal::Removed);
    };
    let owner = names::owner_hash(&namespace, &record.name_any());
    let ours = match created.uid.as_str() {
        "" => found.labels.get(names::LABEL_OWNER) == Some(&owner),
        uid => uid == found.uid,
    };
    if !ours {
        return Ok(Removal::Kept("it was made by somebody else".to_owned()));
    }
    if *name == namespace {
        return Ok(Removal::Kept(
            "it holds the record of the installation".to_owned(),
        ));
    }
    if let Some(user) = other_user(cluster, name, record).await? {
        return Ok(Removal::Kept(format!("{user} is installed into it")));
    }
    loop {
        let left = leftovers(cluster, name).await?;
        if left.is_empty() {
            prune::delete(cluster, &collection, name, &found.uid).await?;
            return Ok(Removal::Removed);
        }
        if let Some(stays) = left.iter().find(|left| !left.is_going) {
            return Ok(Removal::Kept(format!("{} is in it", stays.object)));
        }
        let later = Instant::now() + PAUSE;
        if deadline.is_none_or(|deadline| later > deadline) {
            let objects: Vec<&str> = left.iter().map(|left| left.object.as_str()).collect();
            return Ok(Removal::Kept(format!(
                "{} is still going",
                objects.join(", ")
            )));
        }
        sleep(PAUSE).await;
    }
}

/// Another installation that has to do with a namespace.
async fn other_user(
    cluster: &Cluster,
    name: &str,
    record: &AddonInstallation,
) -> Result<Option<String>, EngineError> {
    let installations = record::list(cluster, None).await?;
    let uses = |installation: &AddonInstallation| {
        let inventory = installation
            .status
            .iter()
            .flat_map(|status| &status.inventory);
        installation.spec.target_namespace.as_deref() == Some(name)
            || installation.namespace().as_deref() == Some(name)
            || inventory
                .into_iter()
                .any(|group| group.namespace.as_deref() == Some(name))
    };
    Ok(installations
        .iter()
        .filter(|other| other.uid() != record.uid())
        .find(|other| uses(other))
        .map(record::display_name))
}

struct Leftover {
    object: String,
    /// Whether it is being deleted, or the garbage collector will.
    is_going: bool,
}

/// What is in a namespace but for what every namespace has: one small LIST for every kind that it can hold.
async fn leftovers(cluster: &Cluster, name: &str) -> Result<Vec<Leftover>, EngineError> {
    // A kind that came since the table was cached could hide somebody's objects.
    cluster.forget_kinds().await;
    let kinds = cluster.kinds(&BTreeSet::new()).await?;
    let collections: Vec<Collection> = kinds
        .iter()
        .filter(|(_, info)| info.namespaced && info.writable)
        .map(|(gvk, info)| Collection::new(gvk, info, Some(name)))
        .filter(|collection| !is_harmless(&collection.gvk, None))
        .collect();
    let found: Vec<Result<Vec<Leftover>, EngineError>> = stream::iter(collections)
        .map(async |collection| left_in(cluster, &collection).await)
        .buffer_unordered(cluster.concurrency())
        .collect()
        .await;
    let found: Result<Vec<Vec<Leftover>>, EngineError> = found.into_iter().collect();
    Ok(found?.into_iter().flatten().collect())
}

async fn left_in(cluster: &Cluster, collection: &Collection) -> Result<Vec<Leftover>, EngineError> {
    let call = Call::list(collection, METADATA_LIST).query("limit", LOOKED_AT);
    let list = match cluster.send::<PartialList>(call).await {
        Ok(answer) => answer.object,
        Err(error) if error.code() == Some(404) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let metadata = list.items.into_iter().map(|item| item.metadata);
    Ok(metadata
        .filter(|metadata| !is_harmless(&collection.gvk, Some(&metadata.name)))
        .map(|metadata| Leftover {
            object: collection.object(&metadata.name),
            is_going: metadata.deletion_timestamp.is_some()
                || !metadata.owner_references.is_empty(),
        })
        .collect())
}

fn is_harmless(gvk: &Gvk, name: Option<&str>) -> bool {
    HARMLESS
        .iter()
        .any(|(group, kind, only)| *group == gvk.group && *kind == gvk.kind && *only == name)
}
