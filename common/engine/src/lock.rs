//! The lock on an installation: `status.operation`, set together with the union inventory in one write (semantics 13.2).
//!
//! A client that loses with a 409 reads the record again. It waits for a live holder, and replaces an expired one. The holder renews the
//! lock every third of its lease, on a connection of its own, and stops before the lease ends by its own monotonic clock. Each renewal
//! writes the progress, so whoever continues after an interruption begins there.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, pending, select};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use addons_plan::Verb;
use common::api::installation::{AddonInstallation, AddonInstallationStatus, OperationRecord};
use common::api::names::InstallationName;

use super::cluster::{Clock, Cluster};
use super::error::{EngineError, StaleReason};
use super::event::Event;
use super::journal::Journal;
use super::task::ExecuteOptions;
use super::{random, record};

/// How long the lock is held without a renewal.
pub(super) const LEASE_SECONDS: u32 = 15;
const LEASE: Duration = Duration::from_secs(LEASE_SECONDS as u64);
/// Number of renewals during one lease.
const RENEWALS: u32 = 3;
/// The holder stops this long before others may take over: both clocks may be wrong in opposite directions, and the time of a renewal is
/// written in whole seconds.
const MARGIN: Duration = Duration::from_millis(2 * Clock::ERROR + 1000);
/// A write without an answer for this long is sent again in parallel: the connection may be dead, or the server is slow, and then the first
/// write is still the faster one.
const RESEND_AFTER: Duration = Duration::from_secs(3);
/// A server that has not answered a write for this long is busy, perhaps with our own requests: no other request is sent until it answers.
const BUSY_AFTER: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Maximum number of tries to delete the record while others write it.
const DELETE_TRIES: usize = 5;

/// Whether the lock of a record is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Availability {
    /// There is no operation, or its lease has expired.
    Free,
    /// A live client holds it.
    Held {
        /// The client.
        holder: String,
        /// When its operation began, RFC 3339.
        since: String,
    },
}

/// Returns whether the lock of a record is free.
pub(super) fn availability(
    status: Option<&AddonInstallationStatus>,
    now: Timestamp,
    steal: bool,
) -> Availability {
    let Some(operation) = status.and_then(|status| status.operation.as_ref()) else {
        return Availability::Free;
    };
    if steal || !operation.is_alive_at(now) {
        return Availability::Free;
    }
    Availability::Held {
        holder: operation.holder.clone(),
        since: operation.started_at.0.to_string(),
    }
}

/// Waits until no other client holds the lock, and returns the record as it is then. Fails with [`EngineError::Locked`] at once without
/// `wait_for_lock`, otherwise at the deadline.
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

/// Reads the record again. Fails with [`EngineError::Stale`] if it was deleted or created again.
pub(super) async fn reread(
    cluster: &Cluster,
    known: &AddonInstallation,
) -> Result<AddonInstallation, EngineError> {
    let namespace = known.namespace().unwrap_or_default();
    record::get(cluster, &namespace, &known.name_any())
        .await?
        .filter(|found| known.uid().is_none() || found.uid() == known.uid())
        .ok_or_else(|| stale_error(known, StaleReason::Uninstalled))
}

/// Gives back the lock that an interrupted operation of `holder` still holds: a lease of 0 seconds makes it free at once. The next
/// operation continues as after a crash. `journal`: progress that the record may not contain yet.
///
/// # Errors
/// Those of the requests.
pub async fn give_back(
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

/// Returns the error for a record that changed after the plan was made.
pub(super) fn stale_error(record: &AddonInstallation, what: StaleReason) -> EngineError {
    EngineError::Stale {
        installation: record::name(record).to_string(),
        what,
    }
}

/// A held lock with the record as we last wrote it.
#[derive(Debug)]
pub(super) struct Lock {
    /// The record with our operation in its status.
    pub(super) record: AddonInstallation,
    /// The generation of the spec that the operation works with. A spec that others change meanwhile is left to the next operation.
    pub(super) generation: Option<i64>,
    id: String,
    /// When the last successful renewal was sent.
    renewed: Instant,
}

impl Lock {
    /// Writes `status` (with the union inventory) and our operation into the record: the lock and the journal are one write. The caller
    /// handles a 409, which means that another client was faster.
    pub(super) async fn acquire(
        cluster: &Cluster,
        mut record: AddonInstallation,
        mut status: AddonInstallationStatus,
        operation: OperationRecord,
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

    /// Replaces the record with the result of our own write of its spec.
    pub(super) fn set_record(&mut self, record: AddonInstallation) {
        self.generation = record.metadata.generation;
        self.record = record;
    }

    /// Renews the lock until it is lost, or cannot be renewed before it would expire. Returns only then.
    pub(super) async fn keep_renewed(
        &mut self,
        cluster: &Cluster,
        journal: &Journal,
    ) -> EngineError {
        loop {
            sleep_until(self.renewed + LEASE / RENEWALS).await;
            let last = self.renewed + LEASE - MARGIN;
            match timeout_at(last, self.renew(cluster, journal)).await {
                Ok(Ok(())) => {}
                // The server does not answer now, but there is time for another try.
                Ok(Err(error)) if is_temporary(&error) && Instant::now() < last => {
                    sleep(FIRST_PAUSE).await;
                }
                Ok(Err(error)) => return error,
                Err(_) => return stale_error(&self.record, StaleReason::LockExpired),
            }
        }
    }

    /// Runs a future while the lock is renewed.
    ///
    /// # Errors
    /// The lock is lost before the future ends.
    pub(super) async fn run_renewing<T>(
        &mut self,
        cluster: &Cluster,
        journal: &Journal,
        work: impl Future<Output = T>,
    ) -> Result<T, EngineError> {
        let keeping = pin!(self.keep_renewed(cluster, journal));
        match select(pin!(work), keeping).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right((lost, _)) => Err(lost),
        }
    }

    async fn renew(&mut self, cluster: &Cluster, journal: &Journal) -> Result<(), EngineError> {
        let inventory = journal.inventory().to_groups();
        self.write_and_renew(cluster, |status| status.inventory.clone_from(&inventory))
            .await
    }

    /// Changes the status as [`Lock::write`] does, and renews the lock in the same write.
    pub(super) async fn write_and_renew(
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

    /// Changes the status and writes it. After a 409 the record is read again: if our operation is still in it, other changes (a label, the
    /// spec) are kept and the write is repeated; otherwise the lock is lost.
    pub(super) async fn write(
        &mut self,
        cluster: &Cluster,
        change: impl Fn(&mut AddonInstallationStatus),
    ) -> Result<(), EngineError> {
        loop {
            let mut next = self.record.clone();
            change(next.status.get_or_insert_default());
            match write_status(cluster, &next).await {
                Ok(next) => {
                    self.record = next;
                    return Ok(());
                }
                Err(error) if error.is_conflict() => {
                    let found = reread(cluster, &self.record).await?;
                    if stored_status(&found) == stored_status(&next) {
                        // Our write succeeded; only its response was lost.
                        self.record = found;
                        return Ok(());
                    }
                    self.continue_with(found)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes the record, even if others write it meanwhile, unless another operation has taken the lock. Our finalizer is removed first
    /// (semantics 15).
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
            self.continue_with(found)?;
        }
    }

    async fn release_and_delete(&mut self, cluster: &Cluster) -> Result<(), EngineError> {
        if let Some(released) = record::without_finalizer(&self.record) {
            match record::put_metadata(cluster, &released).await {
                Ok(replaced) => self.record = replaced,
                // Our finalizer was the last one of a record that is being deleted.
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        record::delete(cluster, &self.record, false).await
    }

    /// Continues with a record that others wrote if our operation is in it; otherwise the lock is lost.
    fn continue_with(&mut self, found: AddonInstallation) -> Result<(), EngineError> {
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
            None => Err(stale_error(&self.record, StaleReason::LockRemoved)),
        }
    }
}

/// Writes the status. If the answer is late, no other request of ours is sent until it arrives: otherwise an installation with thousands of
/// objects could lose its lock because of its own requests.
async fn write_status(
    cluster: &Cluster,
    record: &AddonInstallation,
) -> Result<AddonInstallation, EngineError> {
    let hushing = pin!(async {
        sleep(BUSY_AFTER).await;
        let _all = cluster.pause_requests().await;
        pending::<Infallible>().await
    });
    match select(pin!(write_status_twice(cluster, record)), hushing).await {
        Either::Left((result, _)) => result,
        Either::Right((never, _)) => match never {},
    }
}

/// Writes the status, and a second time if the first write gets no answer. Both carry the same resourceVersion, so at most one succeeds;
/// the 409 of the other one is handled like a lost answer.
async fn write_status_twice(
    cluster: &Cluster,
    record: &AddonInstallation,
) -> Result<AddonInstallation, EngineError> {
    let write = async || {
        let mut next = record.clone();
        record::put_status(cluster, &mut next).await?;
        Ok(next)
    };
    let mut first = pin!(write());
    if let Ok(result) = timeout(RESEND_AFTER, &mut first).await {
        return result;
    }
    match select(first, pin!(write())).await {
        Either::Left((Err(error), second)) if is_temporary(&error) => second.await,
        Either::Right((Err(error), first)) if is_temporary(&error) => first.await,
        Either::Left((result, _)) | Either::Right((result, _)) => result,
    }
}

/// Returns whether a failed request may succeed when repeated: no answer, or too many requests.
fn is_temporary(error: &EngineError) -> bool {
    error.is_uncertain() || error.code() == Some(429)
}

/// Returns the status as the server stores it: times in whole seconds, without empty fields.
fn stored_status(record: &AddonInstallation) -> Option<serde_json::Value> {
    serde_json::to_value(&record.status).ok()
}

/// Returns a new operation of this client.
pub(super) fn new_operation(
    verb: Verb,
    holder: &str,
    target: Option<common::api::installation::Installed>,
    now: Timestamp,
) -> OperationRecord {
    OperationRecord {
        id: random::hex_id(),
        verb: verb.into(),
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
