//! The target namespace: created before the first object, deleted after the last one where certainly only we use it
//! (semantics 7).

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use kube::ResourceExt as _;
use serde_json::json;
use tokio::time::{Instant, sleep};

use common::api::installation::{AddonInstallation, AddonInstallationStatus, CreatedNamespace};
use common::api::names;
use common::api::names::InstallationName;
use common::manifest::key::{Gvk, ObjectKey};
use common::readiness::{Readiness, Status};

use super::address::Collection;
use super::cluster::Cluster;
use super::delete::{Propagation, delete};
use super::error::EngineError;
use super::event::Event;
use super::meta::{Metadata, Partial};
use super::request::{Call, MERGE_PATCH, METADATA};
use super::snapshot::{namespace_collection, read_all, read_one};
use super::wait::reporter;
use super::{create, record};

const PAUSE: Duration = Duration::from_secs(1);
/// What every namespace has, and what controllers remove by themselves.
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

/// Marks an existing namespace as one that holds core installations: from then on its deletion is guarded
/// (semantics 14).
///
/// # Errors
/// Those of the request.
pub async fn hold_core(cluster: &Cluster, name: &str) -> Result<(), EngineError> {
    let marked = json!({"metadata": {"labels": {names::LABEL_HOLDS_CORE: "true"}}});
    let call = Call::patch(&namespace_collection(), name, MERGE_PATCH, METADATA)
        .query("fieldManager", names::CLIENT)
        .body(marked.to_string().into_bytes());
    cluster.send::<Partial>(call).await.map(|_| ())
}

/// Creates the target namespace with our marks. Returns its uid where it is ours; `None` where another client was faster. A
/// namespace that is being deleted is waited for until `deadline`.
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
    let report = reporter(events);
    loop {
        if let Some(created) = post(cluster, name, &object).await? {
            return Ok(Some(created.uid));
        }
        match read_one(cluster, &namespace_collection(), name).await? {
            // Ours from an earlier try whose response was lost.
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
                    status: Status::Terminating,
                    message: "the one of that name is still being deleted".to_owned(),
                };
                report(&key(name), &readiness);
                sleep(PAUSE).await;
            }
            None => {}
        }
    }
}

/// Completes the status of an operation after one that was interrupted right after the creation of the namespace: our
/// label shows that it was created for us, and its uid is recorded as that operation would have done.
pub(super) async fn identify(
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

/// Posts a namespace; `None` where it exists.
pub(super) async fn post(
    cluster: &Cluster,
    name: &str,
    object: &serde_json::Value,
) -> Result<Option<Metadata>, EngineError> {
    let call = Call::create(&namespace_collection(), name, METADATA)
        .query("fieldManager", names::CLIENT)
        .body(object.to_string().into_bytes());
    let created = create::create::<Partial>(cluster, &namespace_collection(), name, call).await?;
    Ok(created.map(|created| created.metadata))
}

/// What became of a namespace that we created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// It is gone or being deleted.
    Removed,
    /// It stays, and why.
    Kept(String),
}

/// Deletes the namespace that we created, where no other installation uses it and nothing is left in it but objects that are
/// deleted with the ones just deleted (`deleted`: their uids): pods of a Deployment need not be waited for.
pub(super) async fn remove(
    cluster: &Cluster,
    created: &CreatedNamespace,
    record: &AddonInstallation,
    deleted: BTreeSet<String>,
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
        return Ok(Removal::Kept("another client created it".to_owned()));
    }
    if *name == namespace {
        let why = "it holds the record of the installation";
        return Ok(Removal::Kept(why.to_owned()));
    }
    if let Some(user) = other_user(cluster, name, record).await? {
        return Ok(Removal::Kept(format!("{user} is installed into it")));
    }
    let foreign = foreign(leftovers(cluster, name).await?, deleted);
    if !foreign.is_empty() {
        return Ok(Removal::Kept(in_it(&foreign)));
    }
    delete(
        cluster,
        &collection,
        name,
        &found.uid,
        Propagation::Background,
    )
    .await?;
    Ok(Removal::Removed)
}

/// Another installation that uses a namespace.
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
        .map(|other| record::name(other).to_string()))
}

/// An object that is left in a namespace.
#[derive(Clone, Debug)]
struct Leftover {
    object: String,
    metadata: Metadata,
}

/// Whether it stays: it is neither being deleted nor owned by an object that was deleted.
fn foreign(mut left: Vec<Leftover>, mut gone: BTreeSet<String>) -> Vec<String> {
    loop {
        let before = left.len();
        left.retain(|leftover| {
            let metadata = &leftover.metadata;
            let mut owners = metadata.owner_references.iter();
            let goes = metadata.deletion_timestamp.is_some()
                || owners.any(|owner| gone.contains(&owner.uid));
            if goes {
                gone.insert(metadata.uid.clone());
            }
            !goes
        });
        if left.len() == before {
            let mut objects: Vec<String> =
                left.into_iter().map(|leftover| leftover.object).collect();
            objects.sort();
            objects.dedup();
            return objects;
        }
    }
}

/// `shop/Secret a, shop/Till b and 3 more are in it`.
fn in_it(foreign: &[String]) -> String {
    const NAMED: usize = 5;
    let named: Vec<&str> = foreign.iter().take(NAMED).map(String::as_str).collect();
    let more = match foreign.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let are = if foreign.len() == 1 { "is" } else { "are" };
    format!("{}{more} {are} in it", named.join(", "))
}

/// The objects in a namespace, except those that every namespace has: one metadata LIST for every kind that it can hold.
async fn leftovers(cluster: &Cluster, name: &str) -> Result<Vec<Leftover>, EngineError> {
    // A kind that was added after the table was cached could hide objects of others.
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
    let found = read_all(cluster, collection).await?.unwrap_or_default();
    Ok(found
        .into_iter()
        .filter(|metadata| !is_harmless(&collection.gvk, Some(&metadata.name)))
        .map(|metadata| Leftover {
            object: collection.object(&metadata.name),
            metadata,
        })
        .collect())
}

fn is_harmless(gvk: &Gvk, name: Option<&str>) -> bool {
    HARMLESS
        .iter()
        .any(|(group, kind, only)| *group == gvk.group && *kind == gvk.kind && *only == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;
    use crate::meta::OwnerReference;

    fn leftover(uid: &str, owner: Option<&str>, going: bool) -> Leftover {
        Leftover {
            object: uid.to_owned(),
            metadata: Metadata {
                uid: uid.to_owned(),
                owner_references: owner
                    .map(|uid| OwnerReference {
                        uid: uid.to_owned(),
                        ..OwnerReference::default()
                    })
                    .into_iter()
                    .collect(),
                deletion_timestamp: going.then(|| "2026-01-01T00:00:00Z".to_owned()),
                ..Metadata::default()
            },
        }
    }

    #[test]
    fn only_dependents_of_deleted_objects_may_be_left() {
        let deleted = || BTreeSet::from(["deployment".to_owned()]);
        let pod = leftover("pod", Some("set"), false);
        let set = leftover("set", Some("deployment"), false);
        let users = leftover("users", None, false);
        let more = leftover("more", None, false);
        for (left, stay) in [
            (vec![pod.clone(), set.clone()], &[][..]),
            (vec![leftover("old", None, true)], &[]),
            (vec![set, users, more, pod.clone()], &["more", "users"]),
            (vec![pod], &["pod"]),
        ] {
            assert_eq!(foreign(left, deleted()), stay);
        }
    }

    #[test]
    fn what_is_in_it_is_listed() {
        let names: Vec<String> = (1..=7).map(|i| format!("shop/Secret s{i}")).collect();
        assert_eq!(in_it(&names[..1]), "shop/Secret s1 is in it");
        assert_eq!(
            in_it(&names),
            "shop/Secret s1, shop/Secret s2, shop/Secret s3, shop/Secret s4, shop/Secret s5 and 2 more are in it"
        );
    }

    fn installation() -> InstallationName {
        InstallationName {
            namespace: "b".to_owned(),
            name: "dns".to_owned(),
        }
    }

    /// What is recorded afterwards, where the live namespace has this label.
    async fn identified(before: &str, owner: Option<&str>) -> Option<String> {
        let live =
            json!({"metadata": {"name": "a", "uid": "u", "labels": {names::LABEL_OWNER: owner}}});
        let (cluster, asked) = fake::cluster(vec![Some((200, &[], live))]);
        let mut status = AddonInstallationStatus {
            created_namespace: Some(CreatedNamespace {
                name: "a".to_owned(),
                uid: before.to_owned(),
            }),
            ..AddonInstallationStatus::default()
        };
        identify(&cluster, &installation(), &mut status)
            .await
            .unwrap();
        assert_eq!(asked.lines().len(), usize::from(before.is_empty()));
        status.created_namespace.map(|created| created.uid)
    }

    #[tokio::test]
    async fn a_namespace_that_was_created_right_before_the_end_is_identified_by_our_label() {
        let owner = names::owner_hash(&installation().namespace, &installation().name);
        let ours = identified("", Some(&owner)).await;
        assert_eq!(ours.as_deref(), Some("u"));
        assert_eq!(identified("", Some("other")).await, None);
        let known = identified("known", None).await;
        assert_eq!(known.as_deref(), Some("known"));
    }
}
