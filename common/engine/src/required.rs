//! Whether the types that an add-on requires are served, and waiting until they are (`requiredResourceTypes`).
//!
//! Discovery cannot be watched. What changes it can: definitions and APIServices, of which only the metadata of a change is
//! read. After a change discovery is asked a few times, for it follows them after a moment, and nothing says when.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use common::api::catalogue::ResourceType;

use super::address::Collection;
use super::cluster::Cluster;
use super::error::EngineError;
use super::served;
use super::watch::changes;

/// Before discovery is asked after a change; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// After this one it has followed, or something else changes.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// How often discovery is asked where changes may not be watched.
const BLIND_PAUSE: Duration = Duration::from_secs(5);

/// Which of the types are not served. The server is asked where the kinds at hand lack one.
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

/// Waits until all types are served; `tell` hears what is missing, at first and whenever it
/// gets less. What is still missing after `timeout` is returned.
///
/// # Errors
/// Those of discovery.
pub async fn wait(
    cluster: &Cluster,
    types: &[ResourceType],
    timeout: Duration,
    tell: &(dyn Fn(&[ResourceType]) + Send + Sync),
) -> Result<Vec<ResourceType>, EngineError> {
    let deadline = Instant::now() + timeout;
    let mut missing = missing(cluster, types).await?;
    if missing.is_empty() {
        return Ok(missing);
    }
    tell(&missing);
    let (changed, seen) = watch::channel(());
    let definitions = notice(cluster, served::collection(), &changed);
    let services = notice(cluster, api_services(), &changed);
    let looking = until_served(cluster, &mut missing, seen, tell);
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

/// Looks after every change until nothing is missing.
async fn until_served(
    cluster: &Cluster,
    missing: &mut Vec<ResourceType>,
    mut seen: watch::Receiver<()>,
    tell: &(dyn Fn(&[ResourceType]) + Send + Sync),
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
                Ok(()) if missing.len() < before => tell(missing),
                Ok(()) => {}
                // A server that does not answer now is asked again.
                Err(error) if error.is_uncertain() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Takes out what the server serves now, and what the process and the disk know of it is renewed.
async fn look(cluster: &Cluster, missing: &mut Vec<ResourceType>) -> Result<(), EngineError> {
    if !missing.is_empty() {
        cluster.forget_kinds().await;
        let kinds = cluster.kinds(&BTreeSet::new()).await?;
        missing.retain(|wanted| !kinds.serves(wanted));
    }
    Ok(())
}

/// Notices every change of a collection; where it may not be watched, something may have changed at any time.
async fn notice(cluster: &Cluster, collection: Collection, changed: &watch::Sender<()>) {
    let see = |_| {
        changed.send_replace(());
        false
    };
    let _ = changes(cluster, &collection, see).await;
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
