//! The lock on an installation: `status.operation`, set together with the union inventory in one write (semantics 13).
//!
//! A client that loses with a 409 reads again. A live holder is waited for, an expired one is replaced. The holder renews every
//! third of its lease, on a connection of its own, and stops before the lease is over, by its own monotonic clock. Each renewal
//! carries what was done so far: whoever continues after an interruption begins there.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, pending, select};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use common::api::installation::{AddonInstallation, AddonInstallationStatus, Operation};
use common::api::names::InstallationName;

use super::cluster::{Clock, Cluster};
use super::error::{EngineError, StaleReason};
use super::event::Event;
use super::journal::Journal;
use super::task::ExecuteOptions;
use super::{random, record};

/// How long a holder that does not renew keeps the lock.
pub(super) const LEASE_SECONDS: u32 = 15;
const LEASE: Duration = Duration::from_secs(LEASE_SECONDS as u64);
/// Renewals in one lease.
const RENEWALS: u32 = 3;
/// The holder stops this long before others may take over: both clocks may be wrong, in opposite directions, and the time of a
/// renewal is written in whole seconds.
const MARGIN: Duration = Duration::from_millis(2 * Clock::ERROR + 1000);
/// A write without an answer for so long is sent again beside the first: a connection may have died without a word, or the server is
/// slow, and then the first is still the faster one.
const SILENCE: Duration = Duration::from_secs(3);
/// A server that has not answered a write for so long is busy, maybe with what we asked of it: nothing else is asked until it answers.
const BUSY: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How often the deletion of the record is tried while others write into it.
const DELETE_TRIES: usize = 5;

/// Whether the lock of a record is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Availability {
    /// There is no operation, or its holder did not renew it.
    Free,
    /// Held by a live client.
    Held {
        /// Who.
        holder: String,
        /// RFC 3339.
        since: String,
    },
}

/// Judges the lock of a record.
pub(super) fn availability(
    status: Option<&AddonInstallationStatus>,
    now: Timestamp,
    steal: bool,
) -> Availability {
    let Some(operation) = status.and_then(|status| status.operation.as_ref()) else {
        return Availability::Free;
    };
    if steal || !operation.lives_at(now) {
        return Availability::Free;
    }
    Availability::Held {
        holder: operation.holder.clone(),
        since: operation.started_at.0.to_string(),
    }
}

/// Waits until no one else holds the lock and returns the record as it then stands. [`EngineError::Locked`] at once
/// without `wait_for_lock`, else at the deadline.
pub(super) async fn wait_until_free(
    cluster: &Cluster,
    mut stored: AddonInstallation,
    options: &ExecuteOptions,
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Result<AddonInstallation, EngineError> {
    let mut told = None;
    let mut pause = FIRST_PAUSE;
    loop {
        let (holder, since) = match availability(
            stored.status.as_ref(),
            cluster.home().now(),
            options.steal_lock,
        ) {
            Availability::Free => return Ok(stored),
            Availability::Held { holder, since } => (holder, since),
        };
        if !options.wait_for_lock || Instant::now() + pause > deadline {
            return Err(EngineError::Locked {
                installation: record::name(&stored),
                holder,
                since,
            });
        }
        if told.as_ref() != Some(&holder) {
            events(Event::WaitingForLock {
                holder: holder.clone(),
            });
            told = Some(holder);
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        stored = reread(cluster, &stored).await?;
    }
}

/// The record as it is now. [`EngineError::Stale`] where it is gone or was created again.
pub(super) async fn reread(
    cluster: &Cluster,
    known: &AddonInstallation,
) -> Result<AddonInstallation, EngineError> {
    let namespace = known.namespace().unwrap_or_default();
    record::get(cluster, &namespace, &known.name_any())
        .await?
        .filter(|found| known.uid().is_none() || found.uid() == known.uid())
        .ok_or_else(|| stale(known, StaleReason::Uninstalled))
}

/// Gives back a lock that an interrupted operation of `holder` still holds: with a lease of nothing it is free at once. The next
/// operation continues as after a crash. `journal`: what was done so far, where the record does not have it yet.
///
/// # Errors
/// Those of the requests.
pub async fn leave(
    cluster: &Cluster,
    installation: &InstallationName,
    holder: &str,
    journal: Option<&Journal>,
) -> Result<(), EngineError> {
    loop {
        let (namespace, name) = (&installation.namespace, &installation.name);
        let Some(mut record) = record::get(cluster, namespace, name).await? else {
            return Ok(());
        };
        let Some(status) = &mut record.status else {
            return Ok(());
        };
        let operation = status.operation.as_mut();
        let Some(operation) = operation.filter(|operation| operation.holder == holder) else {
            return Ok(());
        };
        operation.lease_seconds = 0;
        if let Some(journal) = journal {
            status.inventory = journal.inventory().to_groups();
        }
        match record::put_status(cluster, &mut record).await {
            Err(error) if error.is_conflict() => {}
            result => return result,
        }
    }
}

/// The error for a record that changed after the plan was made.
pub(super) fn stale(record: &AddonInstallation, what: StaleReason) -> EngineError {
    EngineError::Stale {
        installation: record::name(record).to_string(),
        what,
    }
}

/// A held lock: the record as we last wrote it.
#[derive(Debug)]
pub(super) struct Lock {
    /// The record with our operation in its status.
    pub(super) record: AddonInstallation,
    /// That of the spec that the operation works with. Others may change the spec meanwhile: that is for the next operation.
    pub(super) generation: Option<i64>,
    id: String,
    /// When the last successful renewal was sent.
    renewed: Instant,
}

impl Lock {
    /// Writes `status` (with the union inventory) and our operation into the record: the lock and the journal are one
    /// write. The caller handles a 409: another client was faster.
    pub(super) async fn acquire(
        cluster: &Cluster,
        mut record: AddonInstallation,
        mut status: AddonInstallationStatus,
        operation: Operation,
    ) -> Result<Self, EngineError> {
        let sent = Instant::now();
        let (id, generation) = (operation.id.clone(), record.metadata.generation);
        status.operation = Some(operation);
        record.status = Some(status);
        match record::put_status(cluster, &mut record).await {
            Ok(()) => {}
            // The response to an earlier try may have been lost: then the operation in the record is our own.
            Err(error) if error.is_conflict() => {
                let found = reread(cluster, &record).await?;
                let status = found.status.as_ref();
                match status.and_then(|status| status.operation.as_ref()) {
                    Some(operation) if operation.id == id => record = found,
                    _ => return Err(error),
                }
            }
            Err(error) => return Err(error),
        }
        Ok(Self {
            record,
            generation,
            id,
            renewed: sent,
        })
    }

    /// Takes over the record as our own write of its spec left it.
    pub(super) fn replaced(&mut self, record: AddonInstallation) {
        self.generation = record.metadata.generation;
        self.record = record;
    }

    /// Renews until the lock is lost, or cannot be renewed before it would expire; only then it returns.
    pub(super) async fn keep(&mut self, cluster: &Cluster, journal: &Journal) -> EngineError {
        loop {
            sleep_until(self.renewed + LEASE / RENEWALS).await;
            let last = self.renewed + LEASE - MARGIN;
            match timeout_at(last, self.renew(cluster, journal)).await {
                Ok(Ok(())) => {}
                // The server does not answer now; there is time for another try.
                Ok(Err(error)) if is_passing(&error) && Instant::now() < last => {
                    sleep(FIRST_PAUSE).await;
                }
                Ok(Err(error)) => return error,
                Err(_) => return stale(&self.record, StaleReason::LockExpired),
            }
        }
    }

    /// Does something while the lock is renewed.
    ///
    /// # Errors
    /// The lock is lost before it is done.
    pub(super) async fn during<T>(
        &mut self,
        cluster: &Cluster,
        journal: &Journal,
        work: impl Future<Output = T>,
    ) -> Result<T, EngineError> {
        let keeping = pin!(self.keep(cluster, journal));
        match select(pin!(work), keeping).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right((lost, _)) => Err(lost),
        }
    }

    async fn renew(&mut self, cluster: &Cluster, journal: &Journal) -> Result<(), EngineError> {
        let inventory = journal.inventory().to_groups();
        self.note(cluster, |status| status.inventory.clone_from(&inventory))
            .await
    }

    /// Changes the status as [`Lock::write`] does, and renews the lock with the same write.
    pub(super) async fn note(
        &mut self,
        cluster: &Cluster,
        change: impl Fn(&mut AddonInstallationStatus),
    ) -> Result<(), EngineError> {
        let sent = Instant::now();
        let now = Time(cluster.home().now());
        self.write(cluster, |status| {
            change(status);
            if let Some(operation) = &mut status.operation {
                operation.renewed_at = now.clone();
            }
        })
        .await?;
        self.renewed = sent;
        Ok(())
    }

    /// Changes the status and writes it. After a 409 the record is read again: while our operation is in it, whatever
    /// else was changed (a label, the spec) is kept and the write repeated; otherwise the lock is lost.
    pub(super) async fn write(
        &mut self,
        cluster: &Cluster,
        change: impl Fn(&mut AddonInstallationStatus),
    ) -> Result<(), EngineError> {
        loop {
            let mut next = self.record.clone();
            change(next.status.get_or_insert_default());
            match put(cluster, &next).await {
                Ok(next) => {
                    self.record = next;
                    return Ok(());
                }
                Err(error) if error.is_conflict() => {
                    let found = reread(cluster, &self.record).await?;
                    if written(&found) == written(&next) {
                        // Our write succeeded, only its response was lost.
                        self.record = found;
                        return Ok(());
                    }
                    self.go_on_with(found)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes the record, even if others write into it meanwhile; not where another operation has taken the lock. The finalizer that
    /// held it until now is removed first (semantics 15).
    pub(super) async fn delete(mut self, cluster: &Cluster) -> Result<(), EngineError> {
        let mut tries = 1;
        loop {
            match self.release_and_delete(cluster).await {
                Err(error) if error.is_conflict() && tries < DELETE_TRIES => tries += 1,
                result => return result,
            }
            let found = match reread(cluster, &self.record).await {
                Ok(found) => found,
                Err(EngineError::Stale { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            self.go_on_with(found)?;
        }
    }

    async fn release_and_delete(&mut self, cluster: &Cluster) -> Result<(), EngineError> {
        if let Some(released) = record::without_finalizer(&self.record) {
            match record::put_metadata(cluster, &released).await {
                Ok(replaced) => self.record = replaced,
                // It was the last one of a record that is being deleted.
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        record::delete(cluster, &self.record, false).await
    }

    /// Takes over what others wrote, while our operation is in it; otherwise the lock is lost.
    fn go_on_with(&mut self, found: AddonInstallation) -> Result<(), EngineError> {
        let status = found.status.as_ref();
        match status.and_then(|status| status.operation.as_ref()) {
            Some(operation) if operation.id == self.id => {
                self.record = found;
                Ok(())
            }
            Some(operation) => Err(EngineError::Locked {
                installation: record::name(&self.record),
                holder: operation.holder.clone(),
                since: operation.started_at.0.to_string(),
            }),
            None => Err(stale(&self.record, StaleReason::LockRemoved)),
        }
    }
}

/// Writes the status. Where the answer is late, no other request of ours begins before it: an installation of thousands of objects
/// would lose its lock to its own work.
async fn put(
    cluster: &Cluster,
    record: &AddonInstallation,
) -> Result<AddonInstallation, EngineError> {
    let hushing = pin!(async {
        sleep(BUSY).await;
        let _all = cluster.quiet().await;
        pending::<Infallible>().await
    });
    match select(pin!(put_twice(cluster, record)), hushing).await {
        Either::Left((result, _)) => result,
        Either::Right((never, _)) => match never {},
    }
}

/// Writes the status, a second time where the first write gives no answer. Both have one resourceVersion, so at most one of them
/// is done; the other one's 409 is resolved as that of a lost answer.
async fn put_twice(
    cluster: &Cluster,
    record: &AddonInstallation,
) -> Result<AddonInstallation, EngineError> {
    let write = async || {
        let mut next = record.clone();
        record::put_status(cluster, &mut next).await?;
        Ok(next)
    };
    let mut first = pin!(write());
    if let Ok(result) = timeout(SILENCE, &mut first).await {
        return result;
    }
    match select(first, pin!(write())).await {
        Either::Left((Err(error), second)) if is_passing(&error) => second.await,
        Either::Right((Err(error), first)) if is_passing(&error) => first.await,
        Either::Left((result, _)) | Either::Right((result, _)) => result,
    }
}

/// Whether a request that failed may succeed when it is sent again: no answer, or too many requests.
fn is_passing(error: &EngineError) -> bool {
    error.is_uncertain() || error.code() == Some(429)
}

/// The status as the server stores it: times in whole seconds, without empty fields.
fn written(record: &AddonInstallation) -> Option<serde_json::Value> {
    serde_json::to_value(&record.status).ok()
}

/// A new operation of ours.
pub(super) fn operation(
    verb: &str,
    holder: &str,
    target: Option<common::api::installation::Installed>,
    now: Timestamp,
) -> Operation {
    Operation {
        id: random::hex(),
        verb: verb.to_owned(),
        holder: holder.to_owned(),
        started_at: Time(now),
        renewed_at: Time(now),
        lease_seconds: LEASE_SECONDS,
        target,
    }
}

#[cfg(test)]
#[path = "lock/tests.rs"]
mod tests;
