//! The loop: the leader of several processes watches records and objects, and reconciles each installation when something about it
//! changes, and at an interval. It reconciles several at the same time, each with pauses of its own.
//!
//! Nothing is decided from what a watch says: it only triggers a check. Each installation is planned from what is read then, and executed
//! under the lock of its record, so a person's command and the loop never work on one at the same time.

mod leader;
mod remotes;
mod under_way;

use std::time::Duration;

use addons_distribution::DistributionError;
use addons_distribution::push::PushedCopy;
use addons_engine::EngineError;
use addons_engine::changes::WatchFailure;
use addons_operation::{Context, Interruption, OperationError};
use common::api::names::InstallationName;
use futures::StreamExt as _;
use leader::{FailedWatch, LeaderState};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::cause::ReconcileCause;
use crate::core_set::CoreSetReport;
use crate::distribution::Distribution;
use crate::election::{self, ElectionCandidate, LeaderRevision};
use crate::installation::{
    ReconcileOptions, ReconcileOutcome, ReconcileReport, ReconciledInstallation,
};
use crate::metrics::{LoopMetrics, ReconcileLabels, bool_label};

/// A loop over all installations of a cluster.
pub struct Reconciler<'a> {
    /// The cluster, its sources and helm.
    pub ctx: &'a Context,
    /// How each installation is reconciled.
    pub how: ReconcileOptions,
    /// This process as a candidate for the Lease of the leader.
    pub candidate: ElectionCandidate,
    /// How often everything is checked, including sources, even if nothing is known to have changed.
    pub interval: Duration,
    /// What is distributed as well.
    pub distribution: Distribution,
    /// The metrics of the loop.
    pub metrics: &'a LoopMetrics,
}

/// An event of the loop, for its caller.
#[derive(Debug)]
pub enum LoopEvent<'a> {
    /// Whether this process leads now.
    Leads(bool),
    /// An installation was reconciled, and why.
    Reconciled(
        &'a InstallationName,
        &'a ReconcileOutcome,
        &'a ReconcileCause,
    ),
    /// The core sets were followed. Only what is new is in the report.
    CoreSets(CoreSetReport),
    /// Catalogues were written for the cluster of this namespace.
    Distributed(&'a str, &'a [PushedCopy]),
    /// Catalogues could not be distributed. It is tried again.
    NotDistributed(&'a DistributionError),
    /// Objects, which are named, cannot be watched. It is tried again.
    Unwatched(&'a str, &'a WatchFailure),
    /// The records could not be read, or the Lease could not be written. It is tried again.
    Failed(&'a OperationError),
}

impl Reconciler<'_> {
    /// Runs until it is interrupted. Then operations in progress end in good order, plans are dropped, and the Lease is given back.
    ///
    /// # Errors
    /// The client cannot connect to the cluster.
    pub async fn run(
        &self,
        interruption: &Interruption,
        tell: &(dyn Fn(LoopEvent<'_>) + Send + Sync),
    ) -> Result<(), OperationError> {
        let home = self.ctx.home().await?;
        let apart = self.ctx.with_separate_connection().await?;
        let (leads, mut leading) = watch::channel(None);
        let (_same, revision) = watch::channel(LeaderRevision::Same);
        let (ended, end) = oneshot::channel::<()>();
        let tried = |error: Option<EngineError>| {
            self.metrics.set_ready(error.is_none());
            if let Some(error) = error {
                self.metrics.watch_failures.count("leases");
                tell(LoopEvent::Failed(&error.into()));
            }
        };
        let stop = async {
            let _ = end.await;
        };
        let electing = election::run(home, &self.candidate, revision, &leads, stop, &tried);
        let working = async {
            loop {
                tokio::select! {
                    biased;
                    () = interruption.wait_interrupted() => break,
                    _ = leading.wait_for(Option::is_some) => {}
                }
                let was_taken = election::was_taken_over(home, &self.candidate).await;
                self.how.attempts.record_lead(was_taken);
                self.metrics.leader.set(1);
                tell(LoopEvent::Leads(true));
                self.lead(apart.fresh(), &mut leading, interruption, tell)
                    .await;
                self.metrics.leader.set(0);
                // The next leader counts them.
                self.metrics.count_installations(std::iter::empty());
                tell(LoopEvent::Leads(false));
            }
            let _ = ended.send(());
        };
        tokio::join!(electing, working);
        // If this fails, the Lease expires.
        let _ = election::resign(home, &self.candidate).await;
        Ok(())
    }

    /// Works as long as this process leads, and until everything that was begun has ended, fenced by the locks of the records. If this
    /// process gets its Lease back meanwhile, it continues.
    async fn lead(
        &self,
        apart: Context,
        leading: &mut watch::Receiver<Option<LeaderRevision>>,
        interruption: &Interruption,
        tell: &(dyn Fn(LoopEvent<'_>) + Send + Sync),
    ) {
        let mut leader = LeaderState::new(self.ctx.fresh(), apart, self.interval, &self.how);
        let mut led = false;
        loop {
            let leads = leading.borrow_and_update().is_some() && !interruption.is_interrupted();
            if leads && !led {
                leader.watch_all(&self.how, &self.distribution);
            } else if !leads && led {
                leader.unwatch();
            }
            led = leads;
            if leads {
                leader.begin(&self.how, interruption);
            } else if leader.is_idle() {
                return;
            }
            let due = leader.next();
            // The records that are being read may be older than what watches have seen meanwhile.
            let takes = leads && !leader.is_reading();
            tokio::select! {
                biased;
                Some(()) = leader.running.next() => {}
                Some(heard) = leader.reports.recv() => match heard {
                    ReconcileReport::Waits(name) => leader.under_way.wait(&name),
                    ReconcileReport::Done(done) => self.end(&mut leader, *done, tell),
                },
                Some(namespace) = leader.remotes.running.next() => leader.remotes.end(&namespace),
                Some(written) = leader.contests.next() => {
                    if let Err(error) = written {
                        tell(LoopEvent::Failed(&error));
                    }
                }
                Some(news) = leader.distributed.recv() => match &news {
                    Ok((target, pushed)) => tell(LoopEvent::Distributed(target, pushed)),
                    Err(error) => tell(LoopEvent::NotDistributed(error)),
                },
                Some(reading) = leader.reading.next() => {
                    if let Err(error) = leader.end_reading(reading) {
                        self.metrics.watch_failures.count("addoninstallations");
                        tell(LoopEvent::Failed(&error));
                    }
                }
                Some(report) = leader.core_reports.recv() => match report {
                    Ok(report) => tell(LoopEvent::CoreSets(report)),
                    Err(error) => {
                        self.metrics.watch_failures.count("configmaps");
                        tell(LoopEvent::Failed(&error));
                    }
                },
                Some(signal) = leader.inbox.recv(), if takes => {
                    if let Some(failed) = leader.handle_signal(signal) {
                        self.report_failed_watch(&mut leader, &failed, tell);
                    }
                }
                Some(()) = leader.watches.next(), if leads => {}
                () = wait_until(due), if leads => leader.begin_reading(),
                _ = leading.changed() => {}
                () = interruption.wait_interrupted(), if leads => {}
            }
            if let Some(counted) = leader.take_uncounted() {
                self.metrics.count_installations(counted);
            }
        }
    }

    /// Takes in the result of an installation.
    fn end(
        &self,
        leader: &mut LeaderState,
        done: ReconciledInstallation,
        tell: &(dyn Fn(LoopEvent<'_>) + Send + Sync),
    ) {
        self.count(&done);
        match &done.outcome {
            Ok(outcome) => tell(LoopEvent::Reconciled(&done.name, outcome, &done.cause)),
            Err(error) => tell(LoopEvent::Failed(error)),
        }
        leader.end(done);
    }

    /// Counts the failure of a watch, and reports it now and then. A kind that may not be watched is read at the interval, and does not count as a failure.
    fn report_failed_watch(
        &self,
        leader: &mut LeaderState,
        failed: &FailedWatch,
        tell: &(dyn Fn(LoopEvent<'_>) + Send + Sync),
    ) {
        let FailedWatch {
            resource,
            what,
            failure,
        } = failed;
        if !failure.is_forbidden {
            self.metrics.watch_failures.count(resource);
        }
        if leader.is_watch_news(what) {
            tell(LoopEvent::Unwatched(what, failure));
        }
    }

    fn count(&self, done: &ReconciledInstallation) {
        let outcome = match &done.outcome {
            Ok(ReconcileOutcome::Executed(_, report)) if report.is_done() => "changed",
            Ok(ReconcileOutcome::Executed(..)) | Err(_) => "failed",
            Ok(ReconcileOutcome::Failed(error)) if is_busy(error) => "busy",
            Ok(ReconcileOutcome::Failed(_) | ReconcileOutcome::Lost(_)) => "failed",
            Ok(ReconcileOutcome::OutsideWindow(_)) => "waiting",
            Ok(_) => "up-to-date",
        };
        let record = done.record.as_ref();
        let core = bool_label(record.is_some_and(|record| record.spec.core_addon));
        let labels = ReconcileLabels { outcome, core };
        self.metrics.reconciles.get_or_create(&labels).inc();
        self.metrics.seconds.observe(done.took.as_secs_f64());
    }
}

/// Waits until this time; for ever if there is none.
async fn wait_until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Returns whether another client is at work or was faster, or a newer state is wanted, so that it is tried again soon.
fn is_busy(error: &OperationError) -> bool {
    matches!(
        error.root(),
        OperationError::Interrupted(_)
            | OperationError::Engine(EngineError::Locked { .. } | EngineError::Stale { .. })
    )
}
