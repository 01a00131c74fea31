//! Checks whether the types that an add-on requires are served, and waits until they are (`requiredResourceTypes`).
//!
//! Discovery cannot be watched, but CRDs and APIServices, which change it, can, by metadata alone. After a change, discovery is read
//! several times, because it is updated a moment later without notice.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use common::api::catalogue::ResourceType;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::served;
use super::watch::{ObservedSelector, observe_changes};

/// Pause before discovery is read after a change; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// After the longest pause, discovery is up to date, or will change again.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// Interval for reading discovery if changes may not be watched.
const BLIND_PAUSE: Duration = Duration::from_secs(5);

/// Returns the types that are not served. The server is asked if the known kinds lack one.
///
/// # Errors
/// Those of discovery.
pub async fn find_missing(
    cluster: &Cluster,
    types: &[ResourceType],
) -> Result<Vec<ResourceType>, EngineError> {
    let mut missing: Vec<ResourceType> = types.to_vec();
    if !missing.is_empty() {
        let kinds = cluster.kinds(&BTreeSet::new()).await?;
        missing.retain(|wanted| !kinds.serves(wanted));
    }
    refresh_missing(cluster, &mut missing).await?;
    Ok(missing)
}

/// Waits until all types are served. `report` gets the missing types at first, and whenever there are fewer. Returns the types that are
/// still missing after `timeout`.
///
/// # Errors
/// Those of discovery.
pub async fn wait(
    cluster: &Cluster,
    types: &[ResourceType],
    timeout: Duration,
    report: &(dyn Fn(&[ResourceType]) + Send + Sync),
) -> Result<Vec<ResourceType>, EngineError> {
    let deadline = Instant::now() + timeout;
    let mut missing = find_missing(cluster, types).await?;
    if missing.is_empty() {
        return Ok(missing);
    }
    report(&missing);
    let (changed, seen) = watch::channel(());
    let definitions = notify_changes(cluster, served::collection(), &changed);
    let services = notify_changes(cluster, api_services(), &changed);
    let looking = recheck_until_served(cluster, &mut missing, seen, report);
    let waited = timeout_at(deadline, async {
        tokio::select! {
            served = looking => served,
            // The watches never end.
            _ = futures::future::join(definitions, services) => Ok(()),
        }
    });
    match waited.await {
        Ok(Err(error)) => Err(error),
        Ok(Ok(())) | Err(_) => Ok(missing),
    }
}

/// Reads discovery after every change until nothing is missing.
async fn recheck_until_served(
    cluster: &Cluster,
    missing: &mut Vec<ResourceType>,
    mut seen: watch::Receiver<()>,
    report: &(dyn Fn(&[ResourceType]) + Send + Sync),
) -> Result<(), EngineError> {
    // The sender lives as long as the watches.
    while seen.changed().await.is_ok() {
        let mut pause = FIRST_PAUSE;
        while pause <= LONGEST_PAUSE {
            sleep(pause).await;
            pause *= 2;
            let before = missing.len();
            match refresh_missing(cluster, missing).await {
                Ok(()) if missing.is_empty() => return Ok(()),
                Ok(()) if missing.len() < before => report(missing),
                Ok(()) => {}
                // A server that does not answer is asked again.
                Err(error) if error.is_uncertain() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Removes the types that the server serves now, and refreshes the kinds in memory and on disk.
async fn refresh_missing(
    cluster: &Cluster,
    missing: &mut Vec<ResourceType>,
) -> Result<(), EngineError> {
    if !missing.is_empty() {
        let kinds = cluster.kinds_now().await?;
        missing.retain(|wanted| !kinds.serves(wanted));
    }
    Ok(())
}

/// Reports every change of a collection. If it may not be watched, reports a possible change at every interval.
async fn notify_changes(cluster: &Cluster, collection: Collection, changed: &watch::Sender<()>) {
    let see = |_| {
        changed.send_replace(());
        false
    };
    let _ = observe_changes(cluster, &collection, ObservedSelector::All, see).await;
    loop {
        sleep(BLIND_PAUSE).await;
        changed.send_replace(());
    }
}

fn api_services() -> Collection {
    Collection::from_names(
        "apiregistration.k8s.io/v1",
        "APIService",
        "apiservices",
        None,
    )
}
