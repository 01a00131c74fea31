//! Waits for a leader to fail.

use addons_engine::{Cluster, lease};
use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::revision::LeaderRevisions;
use super::{Election, ElectionCandidate, ElectionStep, RETRY};

/// Waits while another candidate leads, and takes in each renewal when it is written. If the Lease were only read now and then, renewals
/// would be seen late, and the Lease of a dead leader would expire later. Ends when this candidate may be able to take the Lease, for
/// which the next attempt reads it.
pub(super) async fn wait_for_expiry(
    cluster: &Cluster,
    candidate: &ElectionCandidate,
    election: &mut Election,
    expires: Instant,
) {
    let (heard, mut leases) = watch::channel(None::<Lease>);
    let listening = async {
        let ElectionCandidate {
            namespace, name, ..
        } = candidate;
        let watching = lease::follow(cluster, namespace, name, |lease| heard.send(lease).is_err());
        // Without the right to watch, or if a watch breaks off, the Lease is read at an interval.
        if watching.await.is_err() {
            sleep(RETRY).await;
        }
    };
    let deciding = async {
        let mut expires = expires;
        loop {
            tokio::select! {
                () = sleep_until(expires) => return,
                Ok(()) = leases.changed() => {}
            }
            let lease = leases.borrow_and_update().clone();
            let spec = lease.as_ref().map(|lease| {
                election.revisions = LeaderRevisions::from_lease(lease);
                lease.spec.clone().unwrap_or_default()
            });
            match election.decide(spec.as_ref(), Instant::now(), cluster.now()) {
                ElectionStep::Follow(later) => expires = later,
                ElectionStep::Create(_) | ElectionStep::Replace(_) | ElectionStep::Claim => return,
            }
        }
    };
    tokio::select! {
        () = listening => {}
        () = deciding => {}
    }
}
