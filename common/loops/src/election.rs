//! Leader election between several processes, with the algorithm of client-go's `leaderelection` over a Lease (semantics 20.3).
//!
//! The times in a Lease are never compared with our clock. A Lease has expired if it was seen unchanged for as long as its holder asked
//! for, by our own monotonic clock, so the clocks of machines may differ by any amount. The leader stops well before others may replace
//! it, counted from when it sent its last answered write. Its operations in progress are fenced by the locks of the records (semantics
//! 13.2).
//!
//! Candidates may differ in what they would lead with: see [`LeaderRevision`]. A candidate whose revision is not the newest stops, and leaves
//! the Lease to the others for a while (semantics 21.6).

mod revision;

use std::time::Duration;

use addons_engine::{Cluster, EngineError, lease};
use common::api::names::ANNOTATION_TAKEN_FROM;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

pub use revision::LeaderRevision;
use revision::LeaderRevisions;

/// How many seconds others wait for a leader that does not renew.
const LEASE_SECONDS: i32 = 15;
/// How long a leader acts after its last renewal.
const DEADLINE: Duration = Duration::from_secs(10);
/// The pause between two attempts to take or renew the Lease. A candidate that follows a leader watches the Lease meanwhile.
const RETRY: Duration = Duration::from_secs(2);
/// The time limit of one attempt, so that a dead connection leaves time for another attempt.
const LONGEST_TRY: Duration = Duration::from_secs(3);

/// The state of a candidate in an election.
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    /// What this candidate would lead with, and what candidates have had.
    revision: LeaderRevision,
    revisions: LeaderRevisions,
    observed: Option<ObservedLease>,
    leads: Option<LeadershipTerm>,
}

/// How long this candidate leads unless it renews, and with which revision.
#[derive(Clone, Debug)]
struct LeadershipTerm {
    until: Instant,
    revision: LeaderRevision,
}

/// A Lease, and when it was first seen in this state.
#[derive(Clone, Debug)]
struct ObservedLease {
    spec: LeaseSpec,
    at: Instant,
}

/// What a candidate does next.
#[derive(Clone, Debug, PartialEq)]
pub enum ElectionStep {
    /// There is no Lease: create it.
    Create(LeaseSpec),
    /// It is ours, free, or expired: write it at the resourceVersion that was read.
    Replace(LeaseSpec),
    /// Another candidate leads with an older revision: add ours to the Lease, so that it gives way.
    Claim,
    /// Another candidate leads, or should lead. It may be replaced from this time on.
    Follow(Instant),
}

impl Election {
    /// Creates a candidate. No two processes have the same identity.
    #[must_use]
    pub fn new(identity: String) -> Self {
        Self {
            identity,
            revision: LeaderRevision::default(),
            revisions: LeaderRevisions::default(),
            observed: None,
            leads: None,
        }
    }

    /// Sets what this candidate would lead with, and what candidates have had.
    pub fn set_revisions(&mut self, revision: LeaderRevision, revisions: LeaderRevisions) {
        self.revision = revision;
        self.revisions = revisions;
    }

    /// Decides what to do with the Lease as it was just read. `wall`: the time that is written for readers of the Lease.
    pub fn decide(
        &mut self,
        found: Option<&LeaseSpec>,
        now: Instant,
        wall: Timestamp,
    ) -> ElectionStep {
        let time = Some(MicroTime(wall));
        let fresh = |spec: &LeaseSpec, transitions| LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            acquire_time: time.clone(),
            renew_time: time.clone(),
            lease_transitions: Some(transitions),
            ..spec.clone()
        };
        let Some(patience) = self.revisions.patience(&self.revision) else {
            self.leads = None;
            return ElectionStep::Follow(now + RETRY);
        };
        let Some(found) = found else {
            return ElectionStep::Create(fresh(&LeaseSpec::default(), 0));
        };
        let known = self.observed.as_ref().filter(|known| known.spec == *found);
        let at = known.map_or(now, |known| known.at);
        let transitions = found.lease_transitions.unwrap_or_default();
        let holder = found.holder_identity.as_deref().unwrap_or_default();
        let is_held = holder == self.identity && patience.is_zero();
        let free = if holder.is_empty() {
            at
        } else {
            at + lease_duration(found)
        };
        let step = if is_held {
            ElectionStep::Replace(LeaseSpec {
                acquire_time: found.acquire_time.clone(),
                ..fresh(found, transitions)
            })
        } else if now >= free + patience {
            ElectionStep::Replace(fresh(found, transitions.saturating_add(1)))
        } else if self.revisions.is_new(&self.revision) {
            ElectionStep::Claim
        } else {
            ElectionStep::Follow(free + patience)
        };
        if !is_held {
            self.leads = None;
        }
        self.observed = Some(ObservedLease {
            spec: found.clone(),
            at,
        });
        step
    }

    /// Records that our write, sent at this time, was answered.
    pub fn record_write(&mut self, spec: LeaseSpec, sent: Instant) {
        self.leads = Some(LeadershipTerm {
            until: sent + DEADLINE,
            revision: self.revision.clone(),
        });
        self.observed = Some(ObservedLease { spec, at: sent });
    }

    /// Returns until when this candidate leads, if it does.
    #[must_use]
    pub fn leads_until(&self, now: Instant) -> Option<Instant> {
        self.term(now).map(|term| term.until)
    }

    fn term(&self, now: Instant) -> Option<&LeadershipTerm> {
        self.leads.as_ref().filter(|term| now < term.until)
    }
}

/// Returns how long a holder may be silent. A holder that does not say gets as long as we would.
fn lease_duration(spec: &LeaseSpec) -> Duration {
    let seconds = spec.lease_duration_seconds.filter(|seconds| *seconds > 0);
    Duration::from_secs(u64::from(seconds.unwrap_or(LEASE_SECONDS).unsigned_abs()))
}

/// A candidate for a Lease.
#[derive(Clone, Debug)]
pub struct ElectionCandidate {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// The identity of the candidate, for readers of the Lease.
    pub identity: String,
}

/// Runs for election until `stop` ends, and reports in `leads` whether this process leads, and with which revision. `revision` is what it
/// would lead with: it leads with another one only once the Lease allows that. `tried` is called after every attempt, with its error if
/// it failed; the election goes on. A process that led gives the Lease back with [`resign`], once its work has ended.
pub async fn run(
    cluster: &Cluster,
    candidate: &ElectionCandidate,
    mut revision: watch::Receiver<LeaderRevision>,
    leads: &watch::Sender<Option<LeaderRevision>>,
    stop: impl Future<Output = ()>,
    tried: &(dyn Fn(Option<EngineError>) + Send + Sync),
) {
    let mut election = Election::new(candidate.identity.clone());
    let campaign = async {
        loop {
            let begun = Instant::now();
            let bound = election.leads_until(begun).unwrap_or(begun + LONGEST_TRY);
            let own = revision.borrow_and_update().clone();
            let trying = attempt(cluster, candidate, &mut election, own);
            let next = begun + RETRY;
            let mut expires = None;
            match timeout_at(bound.min(begun + LONGEST_TRY), trying).await {
                Ok(Ok(found)) => {
                    expires = found;
                    tried(None);
                }
                Ok(Err(error)) => tried(Some(error)),
                // The answer may still arrive: the next attempt shows it.
                Err(_) => {}
            }
            let now = Instant::now();
            send_leads(leads, election.term(now).map(|term| term.revision.clone()));
            // A leader that cannot renew stops in time, even between two attempts.
            if let Some(until) = election.leads_until(now).filter(|until| *until < next) {
                sleep_until(until).await;
                send_leads(leads, None);
            }
            let waiting = async {
                match expires {
                    Some(expires) if expires > next => {
                        wait_for_expiry(cluster, candidate, &mut election, expires).await;
                    }
                    sooner => sleep_until(sooner.unwrap_or(next)).await,
                }
            };
            tokio::select! {
                () = waiting => {}
                () = wait_for_change(&mut revision) => {}
            }
        }
    };
    tokio::select! {
        () = stop => {}
        () = campaign => {}
    }
    send_leads(leads, None);
}

fn send_leads(leads: &watch::Sender<Option<LeaderRevision>>, now: Option<LeaderRevision>) {
    leads.send_if_modified(|said| {
        let is_news = *said != now;
        *said = now;
        is_news
    });
}

/// Waits for a change; never ends if no change can come any more.
async fn wait_for_change(revision: &mut watch::Receiver<LeaderRevision>) {
    if revision.changed().await.is_err() {
        std::future::pending().await
    }
}

/// Makes one attempt. Returns when the Lease of another leader expires, if that is known.
async fn attempt(
    cluster: &Cluster,
    candidate: &ElectionCandidate,
    election: &mut Election,
    revision: LeaderRevision,
) -> Result<Option<Instant>, EngineError> {
    let ElectionCandidate {
        namespace, name, ..
    } = candidate;
    let found = lease::get(cluster, namespace, name).await?;
    let spec = found
        .as_ref()
        .map(|lease| lease.spec.clone().unwrap_or_default());
    let mut lease = found.unwrap_or_else(|| lease::new(namespace, name));
    election.set_revisions(revision, LeaderRevisions::from_lease(&lease));
    let sent = Instant::now();
    let step = election.decide(spec.as_ref(), sent, cluster.now());
    election
        .revisions
        .with_newest(&election.revision)
        .write_to(&mut lease);
    match step {
        ElectionStep::Follow(expires) => return Ok(Some(expires)),
        ElectionStep::Claim => return lease::write(cluster, &lease).await.map(|_| None),
        ElectionStep::Create(spec) | ElectionStep::Replace(spec) => lease.spec = Some(spec),
    }
    if election.leads.is_none() {
        note_holder(&mut lease, spec.as_ref());
    }
    // Another candidate was faster, or only the answer to our own write was lost: the next attempt shows which.
    if let Some(lease) = lease::write(cluster, &lease).await? {
        election.record_write(lease.spec.unwrap_or_default(), sent);
    }
    Ok(None)
}

/// Notes on a Lease that is taken which holder did not give it back. That may be this candidate, in an earlier process.
fn note_holder(lease: &mut Lease, before: Option<&LeaseSpec>) {
    let holder = before.and_then(|spec| spec.holder_identity.clone());
    let annotations = lease.metadata.annotations.get_or_insert_default();
    match holder.filter(|holder| !holder.is_empty()) {
        Some(holder) => annotations.insert(ANNOTATION_TAKEN_FROM.to_owned(), holder),
        None => annotations.remove(ANNOTATION_TAKEN_FROM),
    };
}

/// Returns whether the former holder had not given back the Lease that this candidate took. If that cannot be read, it is assumed.
pub(crate) async fn was_taken_over(cluster: &Cluster, candidate: &ElectionCandidate) -> bool {
    let found = lease::get(cluster, &candidate.namespace, &candidate.name).await;
    let Ok(found) = found else { return true };
    let annotations = found.and_then(|lease| lease.metadata.annotations);
    annotations.is_some_and(|all| all.contains_key(ANNOTATION_TAKEN_FROM))
}

/// Gives back a Lease that this candidate holds, so that the others do not wait until it expires.
///
/// # Errors
/// Those of the requests.
pub async fn resign(cluster: &Cluster, candidate: &ElectionCandidate) -> Result<(), EngineError> {
    let found = lease::get(cluster, &candidate.namespace, &candidate.name).await?;
    let Some(read) = found else { return Ok(()) };
    let spec = read.spec.clone().unwrap_or_default();
    if spec.holder_identity.as_deref() != Some(&candidate.identity) {
        return Ok(());
    }
    let free = LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(cluster.now())),
        ..spec
    };
    let free = Lease {
        spec: Some(free),
        ..read
    };
    lease::write(cluster, &free).await.map(drop)
}

/// Waits while another candidate leads, and takes in each renewal when it is written. If the Lease were only read now and then, renewals
/// would be seen late, and the Lease of a dead leader would expire later. Ends when this candidate may be able to take the Lease, for
/// which the next attempt reads it.
async fn wait_for_expiry(
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

#[cfg(test)]
mod tests;
