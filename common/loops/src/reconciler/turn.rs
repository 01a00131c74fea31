//! What a leader knows and does: which installations there are, what it watches, and what is under way.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use addons_engine::changes::{self, Change, Changed};
use addons_operation::{Context, Interruption, OperationError, Records, Resolver, name_of};
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::OnceCell;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::Instant;

use super::is_busy;
use crate::duplicates;
use crate::fights::Fights;
use crate::installation::{How, Outcome, reconcile};
use crate::pass::WORKERS;
use crate::queue::{Ended, Queue, Why};
use crate::tracked::{News, Tracked};

/// How long a record that another client writes is left alone: if that client dies, its lock has expired then.
const SETTLED: Duration = Duration::from_secs(20);
/// Until the records are read again where that failed.
const AGAIN: Duration = Duration::from_secs(5);

/// Group and kind of objects.
type Kind = (String, String);

/// What a leader knows and does.
pub(super) struct Turn {
    /// What was read of catalogues and sources, and when.
    ctx: Arc<Context>,
    /// Takes what the catalogues are judged from, beside everything else: what they read is shared with the installations that are
    /// being reconciled, and whoever waited for it here would wait for those, which go on only after this.
    judged: watch::Sender<Arc<Context>>,
    read: Instant,
    interval: Duration,
    pub(super) queue: Queue,
    tracked: BTreeMap<InstallationName, Tracked>,
    fights: Fights,
    /// Records of namespaces that did not stand for this cluster when they were looked at: what is written there is not asked about
    /// before all records are read again.
    elsewhere: BTreeSet<InstallationName>,
    watched: BTreeSet<Kind>,
    /// What objects are watched with: the rights that those of the system namespace are reconciled with.
    watcher: Arc<OnceCell<Context>>,
    account: Option<String>,
    pub(super) watches: FuturesUnordered<LocalBoxFuture<'static, ()>>,
    outbox: UnboundedSender<Signal>,
    pub(super) inbox: UnboundedReceiver<Signal>,
    pub(super) running: FuturesUnordered<LocalBoxFuture<'static, Done>>,
    /// When the records are read again: at once where changes may have been missed, and at the interval, because a namespace may
    /// have come to stand for this cluster.
    stale: Option<Instant>,
    is_missed: bool,
    spread: RandomState,
}

/// Something that a watch saw.
pub(super) enum Signal {
    Records(Change),
    Catalogues,
    Objects(Kind, Change),
}

/// An installation that was reconciled.
pub(super) struct Done {
    pub(super) name: InstallationName,
    /// As it was read or written last; `None` where it is gone, or its namespace does not stand for this cluster.
    record: Option<AddonInstallation>,
    is_elsewhere: bool,
    pub(super) outcome: Result<Outcome, OperationError>,
    pub(super) took: Duration,
}

impl Turn {
    pub(super) fn new(ctx: Context, interval: Duration, account: Option<String>) -> Self {
        let (outbox, inbox) = unbounded_channel();
        let ctx = Arc::new(ctx);
        let (judged, contexts) = watch::channel(Arc::clone(&ctx));
        let turn = Self {
            ctx,
            judged,
            read: Instant::now(),
            interval,
            queue: Queue::new(interval),
            tracked: BTreeMap::new(),
            fights: Fights::default(),
            elsewhere: BTreeSet::new(),
            watched: BTreeSet::new(),
            watcher: Arc::default(),
            account,
            watches: FuturesUnordered::new(),
            outbox,
            inbox,
            running: FuturesUnordered::new(),
            stale: None,
            is_missed: false,
            spread: RandomState::new(),
        };
        turn.watches.push(Box::pin(duplicates::keep(contexts)));
        let (ctx, outbox) = turn.ends();
        turn.watches.push(Box::pin(async move {
            if let Ok(home) = ctx.home().await {
                changes::installations(home, |change| send(&outbox, Signal::Records(change))).await;
            }
        }));
        let (ctx, outbox) = turn.ends();
        turn.watches.push(Box::pin(async move {
            if let Ok(home) = ctx.home().await {
                let system = &ctx.settings().system_namespace;
                changes::catalogues(home, system, |_| send(&outbox, Signal::Catalogues)).await;
            }
        }));
        turn
    }

    /// For a future that outlives the borrow of the turn.
    fn ends(&self) -> (Arc<Context>, UnboundedSender<Signal>) {
        (Arc::clone(&self.ctx), self.outbox.clone())
    }

    /// When something is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let due = self.queue.next().filter(|_| self.running.len() < WORKERS);
        [due, self.stale].into_iter().flatten().min()
    }

    /// Takes in what a watch saw.
    pub(super) fn take(&mut self, signal: Signal) {
        let now = Instant::now();
        match signal {
            Signal::Records(Change::All) => {
                self.stale = Some(now);
                self.is_missed = true;
            }
            Signal::Records(Change::One(changed)) => self.record(&changed, now),
            Signal::Catalogues => {
                self.read_again(now);
                // With the records the catalogues are judged.
                self.stale = Some(now);
                for name in self.tracked.keys() {
                    self.queue.ask(name, now, Why::Asked);
                }
            }
            Signal::Objects(kind, Change::All) => {
                let of_kind = self.tracked.iter();
                for (name, _) in of_kind.filter(|(_, tracked)| tracked.kinds.contains(&kind)) {
                    self.queue.ask(name, now, Why::Drifted);
                }
            }
            Signal::Objects(_, Change::One(changed)) => self.object(changed, now),
        }
    }

    /// A record was written, by whomever.
    fn record(&mut self, changed: &Changed, now: Instant) {
        let selected = self.ctx.settings().namespace.as_ref();
        if selected.is_some_and(|selected| *selected != changed.namespace) {
            return;
        }
        let name = InstallationName {
            namespace: changed.namespace.clone(),
            name: changed.name.clone(),
        };
        if changed.is_gone {
            self.elsewhere.remove(&name);
            self.tracked.remove(&name);
            self.queue.forget(&name);
            return;
        }
        if self.elsewhere.contains(&name) {
            return;
        }
        let tracked = self.tracked.entry(name.clone()).or_default();
        match tracked.news(changed) {
            News::Spec => self.queue.ask(&name, now, Why::Asked),
            // What we write ourselves while it is reconciled is known when it ends.
            News::Status if self.queue.is_running(&name) => return,
            News::Status => self.queue.ask(&name, now + SETTLED, Why::Drifted),
            News::Nothing => return,
        }
        tracked.note(changed);
        // Whoever writes records reads sources: what is remembered of them may be older.
        self.read_again(now);
    }

    /// An object with an owner label was written, by whomever.
    fn object(&mut self, changed: Changed, now: Instant) {
        let mut all = self.tracked.iter_mut();
        let Some((name, tracked)) = all.find(|(_, tracked)| tracked.owner == changed.owner) else {
            return;
        };
        if self.queue.is_running(name) {
            tracked.see(changed);
        } else if tracked.is_drift(&changed) {
            self.queue.ask(name, now, Why::Drifted);
        }
    }

    /// Reads all records, where that is due.
    pub(super) async fn read(&mut self) -> Result<(), OperationError> {
        let now = Instant::now();
        if self.stale.is_none_or(|at| at > now) {
            return Ok(());
        }
        self.stale = Some(now + AGAIN);
        self.judged.send_replace(Arc::clone(&self.ctx));
        let records = Records::read(&self.ctx).await?;
        self.stale = Some(now + self.interval);
        self.elsewhere.clear();
        let is_missed = std::mem::take(&mut self.is_missed);
        let names: BTreeSet<_> = records.all.iter().map(name_of).collect();
        self.tracked.retain(|name, _| names.contains(name));
        let namespace = self.ctx.settings().namespace.clone();
        for record in records.within(namespace.as_deref()) {
            let name = name_of(record);
            if !is_missed && self.tracked.contains_key(&name) {
                continue;
            }
            self.queue.ask(&name, now, Why::Asked);
            if !self.queue.is_running(&name) {
                self.track(name, Tracked::of(record));
            }
        }
        Ok(())
    }

    /// Remembers an installation, and watches the kinds of its objects.
    fn track(&mut self, name: InstallationName, tracked: Tracked) {
        for kind in &tracked.kinds {
            if self.watched.insert(kind.clone()) {
                let ((ctx, outbox), kind) = (self.ends(), kind.clone());
                let (watcher, account) = (Arc::clone(&self.watcher), self.account.clone());
                self.watches.push(Box::pin(async move {
                    let connect = || async {
                        let system = &ctx.settings().system_namespace;
                        match &account {
                            Some(account) => ctx.acting_as(system, account).await,
                            None => Ok(ctx.fresh()),
                        }
                    };
                    // Where that fails, every installation fails for the same reason, and says it.
                    if let Ok(watcher) = watcher.get_or_try_init(connect).await
                        && let Ok(cluster) = watcher.cluster().await
                    {
                        let see = |change| send(&outbox, Signal::Objects(kind.clone(), change));
                        changes::owned(cluster, &kind.0, &kind.1, see).await;
                    }
                }));
            }
        }
        self.tracked.insert(name, tracked);
    }

    /// Begins what is due, as far as there are workers.
    pub(super) fn begin(&mut self, how: &How, interruption: &Interruption) {
        let now = Instant::now();
        while self.running.len() < WORKERS {
            let Some(name) = self.queue.begin(now) else {
                return;
            };
            // Those that are due at the interval share what is read of catalogues and sources.
            if now.duration_since(self.read) > self.interval.mul_f64(0.8) {
                self.read_again(now);
            }
            let (ctx, how) = (Arc::clone(&self.ctx), how.clone());
            self.running
                .push(Box::pin(one(ctx, name, how, interruption.clone())));
        }
    }

    /// Forgets what was read of catalogues and sources.
    fn read_again(&mut self, now: Instant) {
        self.ctx = Arc::new(self.ctx.fresh());
        self.read = now;
    }

    /// Takes in what became of an installation. Returns the record of one that another manager changes again and again, and the
    /// sentence about that.
    pub(super) fn end(&mut self, done: Done) -> Option<(AddonInstallation, String)> {
        let now = Instant::now();
        let fight = match &done.outcome {
            Ok(Outcome::Executed(_, report)) => self.fights.note(&done.name, report, now),
            _ => None,
        };
        let ended = match &done.outcome {
            _ if fight.is_some() => Ended::Contested,
            Ok(Outcome::Failed(error)) if is_busy(error) => Ended::Busy,
            Ok(Outcome::Executed(_, report)) if !report.is_done() => Ended::Badly,
            Ok(Outcome::Failed(_)) | Err(_) => Ended::Badly,
            Ok(_) => Ended::Well,
        };
        let random = self
            .spread
            .hash_one((&done.name, self.queue.len(), done.took));
        let spread =
            f64::from(u32::try_from(random >> 32).unwrap_or_default()) / f64::from(u32::MAX);
        let Some(record) = done.record else {
            if done.outcome.is_ok() {
                if done.is_elsewhere {
                    self.elsewhere.insert(done.name.clone());
                }
                self.tracked.remove(&done.name);
                self.fights.forget(&done.name);
                self.queue.forget(&done.name);
            } else {
                self.queue.end(&done.name, ended, now, spread);
            }
            return None;
        };
        let before = self.tracked.remove(&done.name).unwrap_or_default();
        let (after, has_drifted) = before.after(&record);
        if has_drifted {
            self.queue.ask(&done.name, now, Why::Drifted);
        }
        self.queue.end(&done.name, ended, now, spread);
        self.track(done.name, after);
        fight.map(|sentence| (record, sentence))
    }
}

/// The turn may have ended.
fn send(outbox: &UnboundedSender<Signal>, signal: Signal) {
    let _ = outbox.send(signal);
}

/// Reconciles one installation, from what is read now.
async fn one(
    ctx: Arc<Context>,
    name: InstallationName,
    how: How,
    interruption: Interruption,
) -> Done {
    let begun = Instant::now();
    let mut is_elsewhere = false;
    let (record, outcome) = match Resolver::of_records(&ctx).await {
        Err(error) => (None, Err(error)),
        Ok(resolver) => {
            let found = resolver.records.get(&name);
            is_elsewhere = found.is_some() && !resolver.records.local.contains(&name.namespace);
            match found.filter(|_| !is_elsewhere) {
                None => (None, Ok(Outcome::UpToDate)),
                Some(record) => {
                    let outcome = reconcile(&ctx, &resolver, record, &how, &interruption).await;
                    let last = match &outcome {
                        Outcome::Executed(_, report) => report.record.clone(),
                        _ => Some(record.clone()),
                    };
                    (last, Ok(outcome))
                }
            }
        }
    };
    Done {
        name,
        record,
        is_elsewhere,
        outcome,
        took: begun.elapsed(),
    }
}
