//! Reads the live state of the wanted and recorded objects: metadata only, with one LIST per kind and namespace (semantics 12.5).

mod collection;
mod owners;
mod reconciler;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};

use addons_plan::gitops::GitOpsReconciler;
use addons_plan::prune::keep;
use addons_plan::snapshot::{Controller, LiveObject, Snapshot, SnapshotRequest, UnservedKind};
use common::api::names;
use common::entrance;
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::KindTable;

use super::address::{Collection, query_value};
use super::addressed;
use super::autoscaler::{self, ScaledTarget};
use super::cluster::Cluster;
use super::error::EngineError;
use super::inhabited;
use super::listing;
use super::meta::{LiveMetadata, PartialObject};
use super::request::{self, ApiCall, METADATA, METADATA_LIST};

/// Number of objects per page.
const PAGE: &str = "500";
/// Number of CRDs and namespaces whose contents are read at a time.
const AT_A_TIME: usize = 4;

/// Reads the existing objects, and whether the namespaces exist: by GET if one object of a kind and namespace is needed, by a metadata-only
/// LIST if several are. Autoscalers are listed only in namespaces where another manager set the replicas of an object that also sets them.
///
/// Also returns the kinds that were used: if the server does not serve some of `kinds`, they are older than a CRD, and are read again.
///
/// # Errors
/// Those of the requests. A kind that is not served is not an error, but listed in [`Snapshot::unserved`]; a recorded object that cannot be
/// read is in [`Snapshot::unreadable`].
pub async fn read(
    cluster: &Cluster,
    mut kinds: Arc<KindTable>,
    reads: &SnapshotRequest,
) -> Result<(Arc<KindTable>, Snapshot), EngineError> {
    let mut snapshot = read_by_kinds(cluster, &kinds, reads).await?;
    let is_old = |(group, kind): &(String, String)| kinds.preferred(group, kind).is_some();
    if snapshot.unserved.keys().any(is_old) {
        kinds = cluster.kinds_now().await?;
        snapshot = read_by_kinds(cluster, &kinds, reads).await?;
    }
    let recorded = reads.recorded.iter();
    let recorded: BTreeSet<_> = recorded.map(|key| (&key.group, &key.kind)).collect();
    for ((group, kind), unserved) in &mut snapshot.unserved {
        if recorded.contains(&(group, kind)) && kinds.preferred(group, kind).is_none() {
            *unserved = addressed::check_unserved(cluster, &kinds, group, kind).await?;
        }
    }
    let deletable = reads.deletable.iter();
    let deletable = deletable.filter(|key| snapshot.live.contains_key(*key));
    let inhabited: Vec<_> = stream::iter(deletable)
        .map(async |key| {
            let found = inhabited::read(cluster, key, &reads.leaving).await?;
            Ok::<_, EngineError>(found.map(|found| (key.clone(), found)))
        })
        .buffered(AT_A_TIME)
        .try_collect()
        .await?;
    snapshot.inhabited = inhabited.into_iter().flatten().collect();
    Ok((kinds, snapshot))
}

/// Reads which of these objects exist, as [`read`] does; without objects, nothing is read. An object that cannot be read is in
/// [`Snapshot::unreadable`].
///
/// # Errors
/// The server cannot be reached.
pub async fn read_existing(
    cluster: &Cluster,
    objects: BTreeSet<ObjectKey>,
) -> Result<Snapshot, EngineError> {
    if objects.is_empty() {
        return Ok(Snapshot::default());
    }
    let needed = objects.iter();
    let needed = needed.map(|key| (key.group.clone(), key.kind.clone()));
    let kinds = cluster.kinds(&needed.collect()).await?;
    let request = SnapshotRequest {
        recorded: objects.clone(),
        objects,
        ..SnapshotRequest::default()
    };
    read_by_kinds(cluster, &kinds, &request).await
}

/// Reads the objects with these kinds, whether they are up to date or not.
async fn read_by_kinds(
    cluster: &Cluster,
    kinds: &KindTable,
    reads: &SnapshotRequest,
) -> Result<Snapshot, EngineError> {
    let SnapshotRequest {
        objects: keys,
        recorded,
        namespaces,
        replicas,
        adoptable,
        owner,
        deletable: _,
        leaving: _,
    } = reads;
    let owner = owner.as_deref();
    let mut scaled = Vec::new();
    let mut reconciled = Vec::new();
    let mut snapshot = Snapshot::default();
    let mut wanted = group_by_collection(kinds, keys, &mut snapshot);
    if !namespaces.is_empty() {
        wanted
            .entry(namespace_collection())
            .or_default()
            .extend(namespaces.iter().map(String::as_str));
    }

    let found: Vec<_> = stream::iter(wanted)
        .map(async |(collection, names)| {
            let found = collection::read(cluster, kinds, &collection, &names, owner).await?;
            Ok::<_, EngineError>((collection, found))
        })
        .buffer_unordered(cluster.concurrency())
        .try_collect()
        .await?;
    for (collection, found) in found {
        let Gvk { group, kind, .. } = collection.gvk;
        let Some(found) = found else {
            snapshot.unserved.insert((group, kind), unknown_unserved());
            continue;
        };
        let key_of = |name: &str| ObjectKey {
            group: group.clone(),
            kind: kind.clone(),
            namespace: collection.namespace.clone(),
            name: name.to_owned(),
        };
        for (names, error) in found.unreadable {
            let keys = names.iter().map(|name| key_of(name)).collect();
            snapshot
                .unreadable
                .extend(unreadable_recorded(keys, error, recorded)?);
        }
        for metadata in found.live {
            // A namespace that is being deleted has to be waited for and created again, so for the plan it does not exist.
            let stays = metadata.deletion_timestamp.is_none();
            let is_asked = namespaces.contains(&metadata.name);
            if group.is_empty() && kind == "Namespace" && is_asked && stays {
                snapshot.namespaces.insert(metadata.name.clone());
            }
            let key = key_of(&metadata.name);
            if keys.contains(&key) {
                if replicas.contains(&key) {
                    scaled.extend(ScaledTarget::from_writers(&key, &metadata.writers));
                }
                if adoptable.contains(&key) {
                    let managers = metadata.writers.iter().map(|it| it.manager.as_str());
                    let (labels, annotations) = (&metadata.labels, &metadata.annotations);
                    let named = GitOpsReconciler::from_marks(labels, annotations, managers);
                    reconciled.extend(named.into_iter().map(|by| (key.clone(), by)));
                }
                snapshot.live.insert(key, to_live_object(metadata));
            } else if has_owner(&metadata, owner) {
                snapshot.unrequested.insert(key, to_live_object(metadata));
            }
        }
    }
    snapshot.autoscalers = autoscaler::find_scalers(cluster, kinds, scaled).await?;
    for (key, by) in reconciler::find_live_reconcilers(cluster, kinds, reconciled).await? {
        let live = snapshot.live.entry(key);
        live.and_modify(|live| live.reconciled_by = Some(by));
    }
    Ok(snapshot)
}

fn unknown_unserved() -> UnservedKind {
    UnservedKind::Unknown("the server does not serve it".to_owned())
}

/// Returns recorded objects that cannot be read, with the reason. Fails if one is not recorded, because its owner, and whether it exists,
/// are then unknown.
fn unreadable_recorded(
    keys: Vec<ObjectKey>,
    error: EngineError,
    recorded: &BTreeSet<ObjectKey>,
) -> Result<impl Iterator<Item = (ObjectKey, String)> + use<>, EngineError> {
    if !keys.iter().all(|key| recorded.contains(key)) {
        return Err(error);
    }
    let why = error.describe();
    Ok(keys.into_iter().map(move |key| (key, why.clone())))
}

/// Returns whether an object has this value of the owner label.
fn has_owner(metadata: &LiveMetadata, owner: Option<&str>) -> bool {
    let label = metadata.labels.get(names::LABEL_OWNER);
    owner.is_some() && label.map(String::as_str) == owner
}

/// Returns the collections of objects, with their names; kinds that are not served are recorded in the snapshot.
fn group_by_collection<'a>(
    kinds: &KindTable,
    keys: &'a BTreeSet<ObjectKey>,
    snapshot: &mut Snapshot,
) -> BTreeMap<Collection, BTreeSet<&'a str>> {
    let mut wanted: BTreeMap<Collection, BTreeSet<&str>> = BTreeMap::new();
    for key in keys {
        match kinds.preferred(&key.group, &key.kind) {
            Some((gvk, info)) => {
                let collection = Collection::new(gvk, info, key.namespace.as_deref());
                wanted.entry(collection).or_default().insert(&key.name);
            }
            None => {
                let unserved = (key.group.clone(), key.kind.clone());
                snapshot.unserved.insert(unserved, unknown_unserved());
            }
        }
    }
    wanted
}

/// Returns the collection of namespaces.
pub(super) fn namespace_collection() -> Collection {
    Collection::from_names("v1", "Namespace", "namespaces", None)
}

/// Reads the metadata of one object; `None` if it does not exist.
pub(super) async fn read_one(
    cluster: &Cluster,
    collection: &Collection,
    name: &str,
) -> Result<Option<LiveMetadata>, EngineError> {
    let call = |at: &Collection| ApiCall::get(at, name, METADATA);
    let mut at = collection.clone();
    let answer = addressed::send::<PartialObject>(cluster, &mut at, name, call).await;
    let found = request::if_found(answer)?;
    Ok(found.map(|object| object.metadata))
}

/// Reads all metadata of a collection, page by page; `None` if its version is not served, which says nothing about its objects
/// ([`addressed`]). Starts again as often as the continue token expires (410): each page has its own timeout, and [`listing::read_page`] limits
/// all of them.
pub(super) async fn read_all(
    cluster: &Cluster,
    collection: &Collection,
) -> Result<Option<Vec<LiveMetadata>>, EngineError> {
    read_selected(cluster, collection, &[]).await
}

/// Like [`read_all`], for objects that match selectors: `labelSelector`, `fieldSelector`.
pub(super) async fn read_selected(
    cluster: &Cluster,
    collection: &Collection,
    selectors: &[(&'static str, &str)],
) -> Result<Option<Vec<LiveMetadata>>, EngineError> {
    let mut found = Vec::new();
    let (mut next, mut taken) = (String::new(), 0);
    loop {
        let mut call = ApiCall::list(collection, METADATA_LIST).query("limit", PAGE);
        for (name, selector) in selectors {
            call = call.query(name, &query_value(selector));
        }
        if !next.is_empty() {
            call = call.query("continue", &query_value(&next));
        }
        let read = |text: &str| entrance::from_str::<PartialObject>(text);
        let page = match listing::read_page(cluster, call, &mut taken, read).await {
            Ok(page) => page,
            Err(error) if error.is_unserved() => return Ok(None),
            Err(error) if error.code() == Some(410) && !next.is_empty() => {
                found.clear();
                next.clear();
                continue;
            }
            Err(error) => return Err(error),
        };
        found.extend(page.items.into_iter().map(|item| item.metadata));
        next = page.metadata.r#continue;
        if next.is_empty() {
            return Ok(Some(found));
        }
    }
}

/// The label that every Namespace has.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Returns what a plan needs to know about an object.
pub(super) fn to_live_object(metadata: LiveMetadata) -> LiveObject {
    let owner = metadata.labels.get(names::LABEL_OWNER);
    LiveObject {
        fields: owner
            .map(|owner| metadata.fields_of(owner))
            .unwrap_or_default(),
        writes: metadata.digest_of_writes(),
        other_owner: owners::other_owner(&metadata.labels, &metadata.annotations),
        managed_by: owners::writing_tool(&metadata),
        last_written: owners::last_written(&metadata),
        managers: owners::other_managers(&metadata),
        former: owners::former_mark(&metadata),
        reconciled_by: None,
        owner: metadata.labels.get(names::LABEL_OWNER).cloned(),
        installation: metadata
            .annotations
            .get(names::ANNOTATION_INSTALLATION)
            .cloned(),
        create_only: metadata
            .annotations
            .get(names::ANNOTATION_APPLY)
            .is_some_and(|value| value == names::APPLY_CREATE_ONLY),
        keep: keep::mark(&metadata.annotations),
        labels: Some(&metadata.labels)
            .filter(|labels| labels.contains_key(NAMESPACE_NAME))
            .cloned()
            .unwrap_or_default(),
        controlled_by: metadata
            .owner_references
            .into_iter()
            .find(|owner| owner.controller)
            .map(|owner| Controller {
                kind: owner.kind,
                name: owner.name,
                uid: owner.uid,
            }),
        uid: metadata.uid,
        generation: metadata.generation,
        resource_version: metadata.resource_version,
        terminating: metadata.deletion_timestamp.is_some(),
    }
}
