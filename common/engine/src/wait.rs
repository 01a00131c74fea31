//! Waits for readiness with one list and watch per kind and namespace, opened only if something is not ready yet.
//!
//! Some changes do not appear in the watch: the passing of time, facts that some objects depend on (read when needed), and the cause, for
//! objects that are pending for more than a few seconds.

mod board;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{Either, join_all, select};
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use addons_plan::Target;
use addons_plan::readiness::health_check::{HealthCheck, HealthChecks};
use addons_plan::readiness::{ContextNeed, Readiness, ReadinessStatus};
use common::manifest::key::ObjectKey;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::event::Event;
use super::served::{self, Definition};
use super::watch::{Observation, observe};
use super::{blockers, facts};
use board::{Board, SharedBoard};

/// How often objects are assessed again because time has passed; this sends no request.
const TICK: Duration = Duration::from_secs(1);
/// How long a kind may take to be served: parallel API servers learn of it one by one.
const KIND_PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of objects per group whose blockers are searched after the timeout.
const MAX_SEARCHED: usize = 20;

/// An object that is waited for.
#[derive(Clone, Debug)]
pub(super) struct WaitTarget {
    pub(super) target: Target,
    /// The health check that its entry has for its kind.
    check: Option<Arc<HealthCheck>>,
}

impl WaitTarget {
    /// Finds the check for a target.
    pub(super) fn new(target: Target, checks: &HealthChecks) -> Self {
        Self {
            check: checks.find(&target.key).cloned(),
            target,
        }
    }
}

/// Waits until every target is ready or has failed, or until the deadline. Returns the targets that are not ready, sorted.
pub(super) async fn wait(
    cluster: &Cluster,
    targets: &[WaitTarget],
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Vec<(ObjectKey, Readiness)> {
    let mut definitions = Vec::new();
    let mut groups: BTreeMap<Collection, CheckedKeys<'_>> = BTreeMap::new();
    for WaitTarget { target, check } in targets {
        match Definition::from_key(&target.key) {
            Some(definition) => definitions.push(definition),
            None => {
                let group = groups.entry(Collection::from_target(target)).or_default();
                group.insert(&target.key, check.clone());
            }
        }
    }
    let report = change_reporter(events);
    let watched = join_all(
        groups
            .iter()
            .map(|(collection, keys)| wait_for_group(cluster, collection, keys, deadline, events)),
    );
    let served = served::wait(cluster, definitions, deadline, &report);
    let (watched, mut pending) = futures::join!(watched, served);
    pending.extend(watched.into_iter().flatten());
    pending.sort_by(|(one, _), (other, _)| one.cmp(other));
    pending
}

/// Returns a function that sends [`Event::Waiting`] only if the readiness of an object changed.
pub(super) fn change_reporter(
    events: &(dyn Fn(Event) + Send + Sync),
) -> impl Fn(&ObjectKey, &Readiness) + Send + Sync {
    let told: Mutex<BTreeMap<ObjectKey, Readiness>> = Mutex::default();
    move |key, readiness| {
        let mut told = told
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if told.get(key) != Some(readiness) {
            told.insert(key.clone(), readiness.clone());
            events(Event::Waiting {
                key: key.clone(),
                readiness: readiness.clone(),
            });
        }
    }
}

/// The objects of a group, each with its health check.
type CheckedKeys<'a> = BTreeMap<&'a ObjectKey, Option<Arc<HealthCheck>>>;

/// Waits for the objects of one kind and namespace.
async fn wait_for_group(
    cluster: &Cluster,
    collection: &Collection,
    keys: &CheckedKeys<'_>,
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Vec<(ObjectKey, Readiness)> {
    let shared = SharedBoard::new(Board::new(keys, events));
    let only = match keys.keys().next() {
        Some(key) if keys.len() == 1 => Some(key.name.as_str()),
        _ => None,
    };
    let unseen = {
        let watching = std::pin::pin!(watch(cluster, collection, only, &shared));
        let keeping_up = std::pin::pin!(update_unwatched(cluster, collection, &shared));
        let endpoints = std::pin::pin!(follow_endpoints(cluster, &shared));
        let beside = select(keeping_up, endpoints);
        match timeout_at(deadline, select(watching, beside)).await {
            Ok(Either::Left((Err(error), _))) => Some(error),
            Ok(_) | Err(_) => None,
        }
    };
    explain_pending(cluster, shared.into_board(), unseen.as_ref()).await
}

/// Watches the objects until none is pending. A kind that is not served yet is retried for a while.
async fn watch(
    cluster: &Cluster,
    collection: &Collection,
    only: Option<&str>,
    shared: &SharedBoard<'_>,
) -> Result<(), EngineError> {
    let begun = Instant::now();
    let see = |seen| shared.process(seen, cluster.now());
    loop {
        match observe(cluster, collection, only, see).await {
            Err(error) if error.is_unserved() && begun.elapsed() < KIND_PATIENCE => {
                shared.process(Observation::Lost(error.describe()), cluster.now());
                sleep(TICK).await;
            }
            ended => return ended,
        }
    }
}

/// Updates what the watch cannot show, until no object is pending.
async fn update_unwatched(cluster: &Cluster, collection: &Collection, shared: &SharedBoard<'_>) {
    let gvk = &collection.gvk;
    loop {
        let _ = timeout(TICK, shared.facts_missing.notified()).await;
        let lacks = shared.lock().missing_needs();
        if lacks.contains(&ContextNeed::HasStatus) {
            let has_status = facts::kind_has_status(cluster, &gvk.group, &gvk.kind).await;
            let facts = &mut shared.lock().facts;
            facts.learn_has_status(&gvk.group, &gvk.kind, has_status);
        }
        if lacks.contains(&ContextNeed::Classes) {
            let classes = facts::list_classes(cluster).await;
            shared.lock().facts.learn_classes(classes);
        }
        let unseen = shared.lock().find_unseen_job();
        if let Some(key) = unseen {
            let end = blockers::find_job_end(cluster, &key).await;
            shared.lock().record_job_end(&key, end);
        }
        if shared.lock().reassess(cluster.now()) {
            return;
        }
        let due = shared.lock().next_to_search();
        if let Some((key, object)) = due
            && cluster.blocker_searches.try_begin()
        {
            let blocker = blockers::find_blocker(cluster, &key, &object).await;
            shared.lock().record_blocker(&key, blocker, cluster.now());
        }
    }
}

/// Watches the endpoints of the Services that the objects call, until none is pending; does nothing if they call none.
async fn follow_endpoints(cluster: &Cluster, shared: &SharedBoard<'_>) {
    let mut followed = BTreeSet::new();
    let mut following = FuturesUnordered::new();
    loop {
        let called = shared.lock().called_namespaces();
        for namespace in called {
            if followed.insert(namespace.clone()) {
                following.push(follow_endpoints_in(cluster, shared, namespace));
            }
        }
        let more = std::pin::pin!(shared.endpoints_missing.notified());
        if following.is_empty() {
            more.await;
        } else if let Either::Right((Some(true), _)) = select(more, following.next()).await {
            return;
        }
    }
}

/// Returns `true` when no object is pending, `false` if the endpoints of this namespace cannot be read.
async fn follow_endpoints_in(
    cluster: &Cluster,
    shared: &SharedBoard<'_>,
    namespace: String,
) -> bool {
    let services = facts::list_services(cluster, &namespace).await;
    shared.lock().facts.set_services(&namespace, services);
    let see = |seen| {
        let mut board = shared.lock();
        match seen {
            Observation::Listed(slices) => board.facts.set_endpoints(&namespace, &slices),
            Observation::Changed(slice) => board.facts.change_endpoints(&slice),
            Observation::Deleted(slice) => board.facts.remove_endpoints(&slice),
            Observation::Lost(_) => {}
        }
        board.reassess(cluster.now())
    };
    let followed = observe(cluster, &facts::slices_collection(&namespace), None, see).await;
    let mut board = shared.lock();
    if followed.is_err() {
        board.facts.mark_endpoints_unreadable(&namespace);
    }
    board.reassess(cluster.now())
}

/// Returns the objects that are not ready at the end, and why.
async fn explain_pending(
    cluster: &Cluster,
    board: Board<'_>,
    unseen: Option<&EngineError>,
) -> Vec<(ObjectKey, Readiness)> {
    let unseen = match (unseen, board.lost) {
        (Some(error), _) => Some((ReadinessStatus::Unknown, error.to_string())),
        (None, lost) => lost.map(|why| (ReadinessStatus::InProgress, why)),
    };
    let pending = board.entries.into_iter();
    let pending = pending.filter(|(_, entry)| entry.readiness.status != ReadinessStatus::Current);
    let explained = pending.enumerate().map(async |(i, (key, entry))| {
        let mut readiness = entry.readiness.clone();
        if readiness.status == ReadinessStatus::Failed {
            return (key.clone(), readiness);
        }
        if let Some((status, why)) = &unseen {
            readiness.status = *status;
            readiness.message = format!("its readiness cannot be seen: {why}");
        } else if i < MAX_SEARCHED
            && entry.needs_search()
            && let Some(blocker) =
                blockers::find_blocker(cluster, key, &entry.existing_object()).await
        {
            readiness.message = format!("{}; {}", entry.message(), blocker.message);
        }
        (key.clone(), readiness)
    });
    join_all(explained).await
}

#[cfg(test)]
#[path = "wait/tests.rs"]
mod tests;
