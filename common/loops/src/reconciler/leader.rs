//! The state and the actions of a leader: which installations there are, what it watches, and what is under way.

mod reading;
mod signals;
mod watches;

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use addons_engine::EngineError;
use addons_operation::{Context, Interruption, OperationError};
use common::api::names::InstallationName;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use reading::Reading;
pub(super) use signals::FailedWatch;
use signals::{ObjectGroupKind, Signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;

use super::is_busy;
use super::remotes::Remotes;
use super::under_way::WorkUnderWay;
use crate::cause::ReconcileCause;
use crate::core_set::CoreSetReport;
use crate::fights::{Fights, GUARD_TRUCE, TRUCE, record_contested};
use crate::installation::{
    ReconcileOptions, ReconcileOutcome, ReconcileReport, ReconciledInstallation,
};
use crate::metrics::CountedState;
use crate::queue::{Queue, ReconcileEnd};
use crate::remote::GroupedInstallation;
use crate::slots::{Lane, work_and_notify};
use crate::tracked::TrackedInstallation;
use crate::{distribution, installation, remote};

/// How often the failures of one watch are reported.
const WATCH_NEWS: Duration = Duration::from_secs(60);

/// How long after a maintenance window opens the first changes begin.
const WINDOW_OPENS: Duration = Duration::from_secs(1);

/// The state of a leader.
pub(super) struct LeaderState {
    /// Holds what was read of catalogues and sources since `read`.
    ctx: Arc<Context>,
    /// For requests that must not wait for those of the installations that are being reconciled.
    apart: Context,
    /// Passes on the context with which catalogues are checked, independently of the rest: what that reads is shared with the
    /// installations that are being reconciled.
    catalogue_contexts: watch::Sender<Arc<Context>>,
    /// The same for the core set.
    core_contexts: watch::Sender<Arc<Context>>,
    read: Instant,
    interval: Duration,
    pub(super) queue: Queue,
    tracked: BTreeMap<InstallationName, TrackedInstallation>,
    /// Whether `tracked` has changed since it was counted.
    is_uncounted: bool,
    fights: Fights,
    /// The namespaces that stand for this cluster. Records of other namespaces belong to other clusters.
    local_namespaces: BTreeSet<String>,
    pub(super) remotes: Remotes,
    /// Records of namespaces that stood for no cluster when they were looked at. Changes of these are ignored until all records are read
    /// again.
    unbound_records: BTreeSet<InstallationName>,
    watched: BTreeSet<ObjectGroupKind>,
    /// The context that watches objects, with the rights with which installations of the system namespace are reconciled.
    watcher: Arc<OnceCell<Context>>,
    account: Option<String>,
    pub(super) watches: FuturesUnordered<LocalBoxFuture<'static, ()>>,
    outbox: UnboundedSender<Signal>,
    pub(super) inbox: UnboundedReceiver<Signal>,
    /// The installations that are being reconciled in this cluster.
    pub(super) running: FuturesUnordered<LocalBoxFuture<'static, ()>>,
    /// The work under way, in this cluster and in others.
    pub(super) under_way: WorkUnderWay,
    report_sender: UnboundedSender<ReconcileReport>,
    /// Reports about the work under way.
    pub(super) reports: UnboundedReceiver<ReconcileReport>,
    /// Reports about distributed catalogues.
    pub(super) distributed: UnboundedReceiver<distribution::DistributionResult>,
    /// Reports about core sets.
    pub(super) core_reports: UnboundedReceiver<Result<CoreSetReport, OperationError>>,
    /// When each failing watch was last reported, by what it watches.
    watch_failures: BTreeMap<String, Instant>,
    /// When the records are read again: at once if changes may have been missed, and at the interval, because a namespace may have come
    /// to stand for a cluster.
    stale: Option<Instant>,
    is_missed: bool,
    /// The read of all records: at most one at a time.
    pub(super) reading: FuturesUnordered<LocalBoxFuture<'static, Reading>>,
    /// Writes of conditions about installations that are left to another manager.
    pub(super) contests: FuturesUnordered<LocalBoxFuture<'static, Result<(), OperationError>>>,
    spread: RandomState,
}

impl LeaderState {
    pub(super) fn new(
        ctx: Context,
        apart: Context,
        interval: Duration,
        how: &ReconcileOptions,
    ) -> Self {
        let (outbox, inbox) = unbounded_channel();
        let (report_sender, reports) = unbounded_channel();
        let ctx = Arc::new(ctx);
        let catalogue_contexts = watch::Sender::new(Arc::clone(&ctx));
        let core_contexts = watch::Sender::new(Arc::clone(&ctx));
        Self {
            ctx,
            apart,
            catalogue_contexts,
            core_contexts,
            read: Instant::now(),
            interval,
            queue: Queue::new(interval),
            tracked: BTreeMap::new(),
            is_uncounted: true,
            fights: Fights::default(),
            local_namespaces: BTreeSet::new(),
            remotes: Remotes::default(),
            unbound_records: BTreeSet::new(),
            watched: BTreeSet::new(),
            watcher: Arc::default(),
            account: how.account.clone(),
            watches: FuturesUnordered::new(),
            outbox,
            inbox,
            running: FuturesUnordered::new(),
            under_way: WorkUnderWay::default(),
            report_sender,
            reports,
            distributed: unbounded_channel().1,
            core_reports: unbounded_channel().1,
            watch_failures: BTreeMap::new(),
            stale: None,
            is_missed: false,
            reading: FuturesUnordered::new(),
            contests: FuturesUnordered::new(),
            spread: RandomState::new(),
        }
    }

    /// Returns what the metrics count of each installation, if that may have changed since the last call.
    pub(super) fn take_uncounted(
        &mut self,
    ) -> Option<impl Iterator<Item = (&InstallationName, &CountedState)>> {
        let is_uncounted = std::mem::take(&mut self.is_uncounted);
        let tracked = self.tracked.iter();
        is_uncounted.then(|| tracked.map(|(name, tracked)| (name, &tracked.counted)))
    }

    /// Returns whether the failure of a watch is news: of a watch that fails again and again, one in a minute is.
    pub(super) fn is_watch_news(&mut self, what: &str) -> bool {
        let now = Instant::now();
        let is_news = self
            .watch_failures
            .get(what)
            .is_none_or(|last| now.duration_since(*last) >= WATCH_NEWS);
        if is_news {
            self.watch_failures.insert(what.to_owned(), now);
        }
        is_news
    }

    /// Returns clones for a future that outlives the borrow of this state.
    fn future_handles(&self) -> (Arc<Context>, UnboundedSender<Signal>) {
        (Arc::clone(&self.ctx), self.outbox.clone())
    }

    /// Returns whether nothing is under way and all reports were taken in. A read of the records is not waited for.
    pub(super) fn is_idle(&self) -> bool {
        let is_done = self.running.is_empty() && self.remotes.running.is_empty();
        is_done && self.reports.is_empty() && self.contests.is_empty()
    }

    /// Returns a function that is called with an installation and whether it is urgent. It returns how much is under way beside the
    /// installation, or `None` if it may not begin now.
    fn room(&self) -> impl Fn(&InstallationName, bool) -> Option<usize> {
        let is_lost = |namespace: &str| self.remotes.is_lost(namespace);
        let sums = self.under_way.sums(&self.local_namespaces, is_lost);
        let system = &self.ctx.settings().system_namespace;
        move |name, is_urgent| {
            let (namespace, lane) = (&name.namespace, self.lane(name, is_urgent));
            let (under_way, is_of_system) = (&self.under_way, namespace == system);
            match self.local_namespaces.contains(namespace) {
                true => under_way.room_here(&sums, namespace, is_of_system, lane),
                false => self.remotes.room(under_way, &sums, namespace, lane),
            }
        }
    }

    /// Returns the lane in which an installation waits.
    fn lane(&self, name: &InstallationName, is_urgent: bool) -> Lane {
        Lane::new(self.is_guard(name), is_urgent)
    }

    /// Returns whether others rely on an installation.
    fn is_guard(&self, name: &InstallationName) -> bool {
        let tracked = self.tracked.get(name);
        tracked.is_some_and(|tracked| tracked.is_guard)
    }

    /// Returns when something is due next.
    pub(super) fn next(&self) -> Option<Instant> {
        let due = self.queue.next_time(self.room());
        let stale = self.stale.filter(|_| !self.is_reading());
        [due, stale].into_iter().flatten().min()
    }

    /// Remembers an installation, and watches the kinds of its objects if they are in this cluster.
    fn track(&mut self, name: InstallationName, mut tracked: TrackedInstallation) {
        if !self.local_namespaces.contains(&name.namespace) {
            tracked.forget_objects();
        }
        for kind in &tracked.kinds {
            if self.watched.insert(kind.clone()) {
                self.watch_kind(kind.clone());
            }
        }
        self.tracked.insert(name, tracked);
        self.is_uncounted = true;
    }

    /// Begins what is due, as long as there is room.
    pub(super) fn begin(&mut self, how: &ReconcileOptions, interruption: &Interruption) {
        let now = Instant::now();
        loop {
            let Some(name) = self.queue.next_due(now, self.room()) else {
                return;
            };
            let cause = self.queue.begin(&name);
            // Installations that are due at the interval share what is read of catalogues and sources.
            if now.duration_since(self.read) > self.interval.mul_f64(0.8) {
                self.refresh_context(now);
            }
            let how = how.clone();
            if self.local_namespaces.contains(&name.namespace) {
                self.begin_in_this_cluster(name, cause, how, interruption);
            } else {
                self.begin_in_other_cluster(name, cause, how, interruption.clone());
            }
        }
    }

    /// Begins an installation of this cluster.
    fn begin_in_this_cluster(
        &mut self,
        name: InstallationName,
        cause: ReconcileCause,
        mut how: ReconcileOptions,
        interruption: &Interruption,
    ) {
        let lane = self.lane(&name, cause.is_urgent());
        how.cause = cause;
        let part = self.under_way.begin(&name, lane, interruption);
        let (ctx, outbox) = (Arc::clone(&self.ctx), self.report_sender.clone());
        self.running.push(Box::pin(async move {
            let waits = || send_report(&outbox, ReconcileReport::Waits(name.clone()));
            let work = installation::reconcile_named(ctx, name.clone(), how, part.clone());
            let done = work_and_notify(&part, waits, work).await;
            send_report(&outbox, ReconcileReport::Done(Box::new(done)));
        }));
    }

    /// Begins an installation of another cluster, together with those that are due there at about the same time.
    fn begin_in_other_cluster(
        &mut self,
        name: InstallationName,
        cause: ReconcileCause,
        mut how: ReconcileOptions,
        interruption: Interruption,
    ) {
        let now = Instant::now();
        if self.remotes.mark_begun() {
            self.watch_secrets();
        }
        let namespace = name.namespace.clone();
        let by = now + self.interval / 4;
        let mut together = self.queue.begin_together(&namespace, now, by);
        together.push((name, cause));
        let all = together.into_iter().map(|(name, cause)| {
            let lane = self.lane(&name, cause.is_urgent());
            let part = self.under_way.begin(&name, lane, &interruption);
            GroupedInstallation {
                name,
                cause,
                lane,
                part,
            }
        });
        let all: Vec<GroupedInstallation> = all.collect();
        how.only_due = !self
            .remotes
            .mark_checked(all.iter().map(|one| &one.name), now);
        let slots = self.remotes.begin(&namespace);
        let (ctx, outbox) = (Arc::clone(&self.ctx), self.report_sender.clone());
        self.remotes.running.push(Box::pin(async move {
            let ctx = tokio::select! {
                biased;
                // After an interruption, the server is not waited for: what is known suffices, because nothing new begins.
                () = interruption.wait_interrupted() => ctx.for_namespace(&namespace),
                ctx = ctx.for_namespace_now(&namespace) => ctx,
            };
            let see = |heard| send_report(&outbox, heard);
            remote::reconcile_together(&ctx, &all, &how, &interruption, &slots, &see).await;
            namespace
        }));
    }

    /// Forgets what was read of catalogues and sources.
    fn refresh_context(&mut self, now: Instant) {
        self.ctx = Arc::new(self.ctx.fresh());
        self.read = now;
    }

    /// Takes in the result of an installation. If another manager keeps changing it, the installation is left to that manager, and its
    /// record says so.
    pub(super) fn end(&mut self, done: ReconciledInstallation) {
        let now = Instant::now();
        self.under_way.end(&done.name);
        let namespace = &done.name.namespace;
        let is_here = self.local_namespaces.contains(namespace);
        self.is_uncounted = true;
        if !is_here {
            self.record_response(&done);
        }
        let fight = match &done.outcome {
            Ok(ReconcileOutcome::Executed(plan, report)) => {
                let planned = plan.installations.first();
                let shared = planned.and_then(|planned| planned.plan.annotation());
                self.fights.record_repairs(&done.name, shared, report, now)
            }
            _ => None,
        };
        let ended = match &done.outcome {
            _ if fight.is_some() => ReconcileEnd::Contested(match self.is_guard(&done.name) {
                true => GUARD_TRUCE,
                false => TRUCE,
            }),
            Ok(ReconcileOutcome::Failed(error)) if is_busy(error) => ReconcileEnd::Busy,
            Ok(ReconcileOutcome::Executed(_, report)) if !report.is_done() => ReconcileEnd::Badly,
            Ok(ReconcileOutcome::Failed(_) | ReconcileOutcome::Lost(_)) | Err(_) => {
                ReconcileEnd::Badly
            }
            Ok(ReconcileOutcome::OutsideWindow(outside)) => {
                // Not before the window is open by the clock of the server.
                let opens = |wait: Duration| ReconcileEnd::Waits(wait + WINDOW_OPENS);
                outside.wait.map_or(ReconcileEnd::Well, opens)
            }
            Ok(_) => ReconcileEnd::Well,
        };
        // The installations of another cluster become due together.
        let random = match is_here {
            true => self
                .spread
                .hash_one((&done.name, self.queue.len(), done.took)),
            false => self.spread.hash_one(namespace),
        };
        let spread =
            f64::from(u32::try_from(random >> 32).unwrap_or_default()) / f64::from(u32::MAX);
        let Some(record) = done.record else {
            if !matches!(done.outcome, Err(_) | Ok(ReconcileOutcome::Lost(_))) {
                if done.is_elsewhere {
                    self.unbound_records.insert(done.name.clone());
                }
                self.tracked.remove(&done.name);
                self.fights.forget(&done.name);
                self.remotes.recheck(&done.name);
                self.queue.forget(&done.name);
            } else {
                self.queue.end(&done.name, ended, now, spread);
            }
            return;
        };
        let before = self.tracked.remove(&done.name).unwrap_or_default();
        let has_drifted = matches!(done.outcome, Ok(ReconcileOutcome::Drifted(_)));
        let (mut after, drift) = before.after_reconcile(&record, has_drifted);
        if let Ok(outcome) = &done.outcome {
            after.counted.set_outcome(outcome);
        }
        if let Some(cause) = drift {
            self.queue.schedule(&done.name, now, cause);
        }
        self.queue.end(&done.name, ended, now, spread);
        self.track(done.name, after);
        if let Some(sentence) = fight {
            let ctx = self.apart.fresh();
            let write = async move { record_contested(&ctx, &record, sentence).await };
            self.contests.push(Box::pin(write));
        }
    }

    /// Records whether another cluster responded. If it did not, its kubeconfig is read again before the next request.
    fn record_response(&mut self, done: &ReconciledInstallation) {
        let is_lost = match &done.outcome {
            Ok(ReconcileOutcome::Lost(_)) => true,
            Ok(ReconcileOutcome::Failed(error)) => matches!(
                error.root(),
                OperationError::Engine(EngineError::Unauthorized { .. })
            ),
            _ => false,
        };
        self.remotes.record_response(&done.name.namespace, !is_lost);
        if is_lost {
            self.ctx.forget_cluster(&done.name.namespace, None);
        }
        if !matches!(
            done.outcome,
            Ok(ReconcileOutcome::UpToDate
                | ReconcileOutcome::Drifted(_)
                | ReconcileOutcome::Executed(..))
        ) {
            self.remotes.recheck(&done.name);
        }
    }
}

/// Ignores that the receiver may have been dropped.
fn send_report(outbox: &UnboundedSender<ReconcileReport>, heard: ReconcileReport) {
    let _ = outbox.send(heard);
}

/// Ignores that the receiver may have been dropped.
fn send_signal(outbox: &UnboundedSender<Signal>, signal: Signal) {
    let _ = outbox.send(signal);
}
