//! Moves a record from an old place to the system namespace, with the objects that are certainly its own (semantics 5).
//!
//! Old and new record are locked together. The new one is created, gets lock and inventory in one write, its objects are handed over,
//! it is completed, and only then the old one is deleted. Whoever is cut off leaves two records of which the new one names the old one
//! by its uid; the next run continues with these two.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use kube::ResourceExt as _;
use serde_json::json;
use tokio::time::Instant;

use common::api::installation::{AddonInstallation, AddonInstallationStatus};
use common::api::names::{self, InstallationName, owner_hash};
use common::manifest::key::ObjectKey;
use common::plan::desired::Desired;
use common::plan::inventory::Inventory;
use common::plan::planner;
use common::plan::transfer::{self, Follower, NotIts, Objects, Obstacle, OldPlace};

use super::apply::handover::{HandedOver, Handover};
use super::begin::moved;
use super::cluster::Cluster;
use super::error::{EngineError, StaleReason};
use super::event::Event;
use super::journal::Journal;
use super::lock::{self, Lock};
use super::meta::Partial;
use super::record;
use super::report::Failure;
use super::request::{Call, MERGE_PATCH, METADATA};
use super::snapshot::{self, namespace_collection, read_one};
use super::task::ExecuteOptions;

const VERB: &str = "move";

/// A record that moves.
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    /// In its old place, as the user agreed to its move.
    pub from: &'a AddonInstallation,
    /// In its new place: to be created, or as an earlier run left it.
    pub to: &'a AddonInstallation,
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Transferred {
    /// Objects that have the new owner.
    pub followed: usize,
    /// Objects that the old record named and that are not its own: they stay as they are.
    pub left: Vec<(ObjectKey, NotIts)>,
    /// Objects that were refused: both records stay, and the next run continues.
    pub failed: Vec<Failure>,
}

/// Why a record is not moved.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// What the record itself forbids.
    #[error(transparent)]
    Obstacle(#[from] Obstacle),
    /// The server refuses, or the record changed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// The objects of an inventory, judged by the live ones; see [`transfer::judge`].
///
/// # Errors
/// Those of the requests; an object that cannot be read.
pub async fn judge(
    cluster: &Cluster,
    inventory: &Inventory,
    owners: &[String],
) -> Result<Objects, TransferError> {
    let recorded = inventory.objects.keys();
    let needed: BTreeSet<_> = recorded
        .map(|key| (key.group.clone(), key.kind.clone()))
        .collect();
    let kinds = cluster.kinds(&needed).await?;
    let reads = planner::reads(&Desired::default(), inventory, &kinds);
    let snapshot = snapshot::read(cluster, &kinds, &reads).await?;
    Ok(transfer::judge(inventory, &snapshot, &kinds, owners)?)
}

/// Moves a record. Where it cannot be moved completely, its locks are given back, and the next run continues.
///
/// # Errors
/// [`EngineError::Stale`] where the record is not what the user agreed to; [`EngineError::Locked`]; those of the requests.
pub async fn run(
    cluster: &Cluster,
    transfer: Transfer<'_>,
    options: &ExecuteOptions,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Result<Transferred, TransferError> {
    let names = [transfer.from, transfer.to].map(record::name);
    let ended = under_locks(cluster, transfer, options, events).await;
    if !ended.as_ref().is_ok_and(|done| done.failed.is_empty()) {
        for name in &names {
            // A lock that cannot be given back expires.
            let _ = lock::leave(cluster, name, &options.holder, None).await;
        }
    }
    ended
}

async fn under_locks(
    cluster: &Cluster,
    transfer: Transfer<'_>,
    options: &ExecuteOptions,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Result<Transferred, TransferError> {
    let from = transfer.from;
    let wait = Wait {
        cluster,
        options,
        deadline: Instant::now() + options.timeout,
        events,
    };
    // Admission may refuse the deletion of the old record, which comes last: it is asked before the first write.
    record::delete(cluster, from, true).await?;
    let as_stored = |stored: &AddonInstallation| stored.status.clone().unwrap_or_default();
    let mut old = wait
        .lock(from.clone(), |stored| moved(from, stored), as_stored)
        .await?;
    let stored = create(cluster, transfer).await?;
    let (to, former) = (record::name(&stored), record::name(from));
    let owners = [&former, &to].map(|it| owner_hash(&it.namespace, &it.name));
    // What the new record has recorded was judged when it was written. In the old one nothing proves that an object with the label of
    // the new owner is its own.
    let mut objects = match &stored.status {
        Some(status) => judge(cluster, &Inventory::of(Some(status)), &owners).await?,
        None => judge(cluster, &Inventory::of(from.status.as_ref()), &owners[..1]).await?,
    };
    let first = transfer::status(from, &objects.inventory);
    let begun = |stored: &AddonInstallation| stored.status.clone().unwrap_or(first.clone());
    let mut new = wait.lock(stored, |_| None, begun).await?;

    let journal = Journal::from(objects.inventory);
    let known = Journal::from(Inventory::of(from.status.as_ref()));
    let handover = Handover {
        from: &owners[0],
        to: &to,
    };
    let mut done = tokio::select! {
        done = follow(cluster, &handover, &objects.follow, &journal) => done,
        lost = old.keep(cluster, &known) => return Err(lost.into()),
        lost = new.keep(cluster, &journal) => return Err(lost.into()),
    };
    done.left.append(&mut objects.left);
    let inventory = journal.inventory();
    let is_done = done.failed.is_empty();
    let status = new.record.status.clone().unwrap_or_default();
    let is_created = !is_done || created_namespace(cluster, &status, &owners, &to).await?;
    new.write(cluster, |status| {
        status.inventory = inventory.to_groups();
        if is_done {
            status.operation = None;
        }
        if !is_created {
            status.created_namespace = None;
        }
    })
    .await?;
    if is_done {
        old.delete(cluster).await?;
    }
    Ok(done)
}

/// The record in its new place. One that is there already is it only if it names the old one.
async fn create(
    cluster: &Cluster,
    transfer: Transfer<'_>,
) -> Result<AddonInstallation, EngineError> {
    let Transfer { from, to } = transfer;
    if to.resource_version().is_some() {
        return lock::reread(cluster, to).await;
    }
    if let Some(created) = record::create(cluster, to).await? {
        return Ok(created);
    }
    let found = lock::reread(cluster, to).await?;
    if OldPlace::named_by(&found) == Some(OldPlace::of(from)) {
        return Ok(found);
    }
    Err(lock::stale(to, StaleReason::Created))
}

/// How a lock is waited for.
struct Wait<'a> {
    cluster: &'a Cluster,
    options: &'a ExecuteOptions,
    deadline: Instant,
    events: &'a (dyn Fn(Event) + Send + Sync),
}

impl Wait<'_> {
    /// Locks a record with this status, unless it changed.
    async fn lock(
        &self,
        mut stored: AddonInstallation,
        changed: impl Fn(&AddonInstallation) -> Option<StaleReason>,
        status: impl Fn(&AddonInstallation) -> AddonInstallationStatus,
    ) -> Result<Lock, EngineError> {
        let (cluster, options) = (self.cluster, self.options);
        loop {
            stored =
                lock::wait_until_free(cluster, stored, options, self.deadline, self.events).await?;
            if let Some(what) = changed(&stored) {
                return Err(lock::stale(&stored, what));
            }
            let operation = lock::operation(VERB, &options.holder, None, cluster.home().now());
            let begun = status(&stored);
            match Lock::acquire(cluster, stored.clone(), begun, operation).await {
                Err(error) if error.is_conflict() && Instant::now() < self.deadline => {
                    stored = lock::reread(cluster, &stored).await?;
                }
                locked => return locked,
            }
        }
    }
}

/// Hands the objects over, many at the same time.
async fn follow(
    cluster: &Cluster,
    handover: &Handover<'_>,
    objects: &[Follower],
    journal: &Journal,
) -> Transferred {
    let mut done = Transferred::default();
    let mut handed = stream::iter(objects)
        .map(async |follower| {
            let handed = handover.object(cluster, follower).await;
            (follower.target.key.clone(), handed)
        })
        .buffer_unordered(cluster.concurrency());
    while let Some((key, result)) = handed.next().await {
        match result {
            Ok(HandedOver::Done(item)) => {
                journal.put(key, item);
                done.followed += 1;
            }
            Ok(HandedOver::Left(why)) => {
                journal.remove([&key]);
                done.left.push((key, why));
            }
            Err(error) => done.failed.push(Failure::of(key, &error)),
        }
    }
    done
}

/// Hands over the namespace that the installation created. Whether there is one: of another, its uninstallation must not dispose.
async fn created_namespace(
    cluster: &Cluster,
    status: &AddonInstallationStatus,
    owners: &[String; 2],
    to: &InstallationName,
) -> Result<bool, EngineError> {
    let Some(created) = &status.created_namespace else {
        return Ok(true);
    };
    let collection = namespace_collection();
    let Some(found) = read_one(cluster, &collection, &created.name).await? else {
        return Ok(true);
    };
    let [former, owner] = owners;
    let label = found.labels.get(names::LABEL_OWNER);
    let is_it = created.uid.is_empty() || created.uid == found.uid;
    if !is_it || !label.is_some_and(|label| owners.contains(label)) {
        return Ok(false);
    }
    if label == Some(former) {
        let marks = json!({"metadata": {
            "uid": found.uid,
            "resourceVersion": found.resource_version,
            "labels": {names::LABEL_OWNER: owner},
            "annotations": {names::ANNOTATION_INSTALLATION: to.to_string()},
        }});
        let call = Call::patch(&collection, &created.name, MERGE_PATCH, METADATA)
            .query("fieldManager", names::CLIENT)
            .body(marks.to_string().into_bytes());
        cluster.send::<Partial>(call).await?;
    }
    Ok(true)
}
