//! Whether the types that an add-on requires are served, and waiting until they are (`requiredResourceTypes`).
//!
//! Discovery cannot be watched, but what changes it can: definitions and APIServices. Only the metadata of a change is
//! read. After a change discovery is asked several times, because it is updated a moment later without notice.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use common::api::catalogue::ResourceType;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::served;
use super::watch::{Selector, changes};

/// Pause before discovery is asked after a change; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// After the longest pause it is up to date, or something else changes.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// How often discovery is asked where changes may not be watched.
const BLIND_PAUSE: Duration = Duration::from_secs(5);

/// The types that are not served. The server is asked where the known kinds lack one.
///
/// # Errors
/// Those of discovery.
pub async fn missing(
    cluster: &Cluster,
    types: &[ResourceType],
) -> Result<Vec<ResourceType>, EngineError> {
    let mut missing: Vec<ResourceType> = types.to_vec();
    if !missing.is_empty() {
        let kinds = cluster.kinds(&BTreeSet::new()).await?;
        missing.retain(|wanted| !kinds.serves(wanted));
    }
    look(cluster, &mut missing).await?;
    Ok(missing)
}

/// Waits until all types are served; `report` gets what is missing, at first and whenever it
/// gets less. Returns what is still missing after `timeout`.
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
    let mut missing = missing(cluster, types).await?;
    if missing.is_empty() {
        return Ok(missing);
    }
    report(&missing);
    let (changed, seen) = watch::channel(());
    let definitions = notice(cluster, served::collection(), &changed);
    let services = notice(cluster, api_services(), &changed);
    let looking = until_served(cluster, &mut missing, seen, report);
    let waited = timeout_at(deadline, async {
        tokio::select! {
            served = looking => served,
            // They never end.
            _ = futures::future::join(definitions, services) => Ok(()),
        }
    });
    match waited.await {
        Ok(Err(error)) => Err(error),
        Ok(Ok(())) | Err(_) => Ok(missing),
    }
}

/// Asks after every change until nothing is missing.
async fn until_served(
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
            match look(cluster, missing).await {
                Ok(()) if missing.is_empty() => return Ok(()),
                Ok(()) if missing.len() < before => report(missing),
                Ok(()) => {}
                // A server that does not answer now is asked again.
                Err(error) if error.is_uncertain() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Removes what the server serves now, and renews the kinds in the process and on disk.
async fn look(cluster: &Cluster, missing: &mut Vec<ResourceType>) -> Result<(), EngineError> {
    if !missing.is_empty() {
        let kinds = cluster.kinds_now().await?;
        missing.retain(|wanted| !kinds.serves(wanted));
    }
    Ok(())
}

/// Reports every change of a collection; where it may not be watched, something may have changed at any time.
async fn notice(cluster: &Cluster, collection: Collection, changed: &watch::Sender<()>) {
    let see = |_| {
        changed.send_replace(());
        false
    };
    let _ = changes(cluster, &collection, Selector::All, see).await;
    loop {
        sleep(BLIND_PAUSE).await;
        changed.send_replace(());
    }
}

fn api_services() -> Collection {
    Collection::known(
        "apiregistration.k8s.io/v1",
        "APIService",
        "apiservices",
        None,
    )
}
