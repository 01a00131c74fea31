//! Takes in what watches see, and decides what is checked because of it.

use std::sync::Arc;
use std::time::Duration;

use addons_engine::changes::{ChangedObject, ObservedChange, WatchFailure, WatchReport};
use common::api::names::InstallationName;
use tokio::time::Instant;

use super::LeaderState;
use crate::cause::ReconcileCause;
use crate::tracked::{RecordChange, drift_cause};

/// How long a record that another client writes is left alone. If that client dies, its lock has expired by then.
const SETTLED: Duration = Duration::from_secs(20);

/// Group and kind of objects.
pub(super) type ObjectGroupKind = (String, String);

/// A change that a watch saw.
pub(in crate::reconciler) enum Signal {
    Records(ObservedChange),
    Catalogues(ObservedChange),
    /// The rules or the list of core add-ons.
    Core,
    Objects(ObjectGroupKind, ObservedChange),
    Secrets(ObservedChange),
    Failed(FailedWatch),
}

/// A watch that failed, and is tried again.
pub(in crate::reconciler) struct FailedWatch {
    /// The resource, for the metrics.
    pub(in crate::reconciler) resource: &'static str,
    /// What it watches.
    pub(in crate::reconciler) what: String,
    pub(in crate::reconciler) failure: WatchFailure,
}

/// Returns the signal for the report of a watch.
pub(super) fn watch_signal(
    resource: &'static str,
    what: &str,
    report: WatchReport,
    to_signal: impl FnOnce(ObservedChange) -> Signal,
) -> Signal {
    match report {
        Ok(change) => to_signal(change),
        Err(failure) => Signal::Failed(FailedWatch {
            resource,
            what: what.to_owned(),
            failure,
        }),
    }
}

impl LeaderState {
    /// Takes in what a watch saw. Returns a failure, which is for the caller.
    pub(in crate::reconciler) fn handle_signal(&mut self, signal: Signal) -> Option<FailedWatch> {
        let now = Instant::now();
        match signal {
            Signal::Failed(failed) => return Some(failed),
            Signal::Records(ObservedChange::All) => {
                self.stale = Some(now);
                self.is_missed = true;
            }
            Signal::Records(ObservedChange::One(changed)) => self.handle_record(&changed, now),
            Signal::Core => self.trigger_core_set(),
            Signal::Catalogues(changed) => {
                let name = match changed {
                    ObservedChange::One(changed) => Some(changed.name),
                    ObservedChange::All => None,
                };
                self.refresh_context(now);
                // The catalogues are checked together with the records.
                self.stale = Some(now);
                self.remotes.recheck_all();
                let cause = ReconcileCause::Catalogue { name };
                for name in self.tracked.keys() {
                    self.queue.schedule(name, now, cause.clone());
                }
            }
            Signal::Objects(kind, ObservedChange::All) => {
                let of_kind = self.tracked.iter();
                for (name, _) in of_kind.filter(|(_, tracked)| tracked.kinds.contains(&kind)) {
                    let kind = kind.1.clone();
                    self.queue
                        .schedule(name, now, ReconcileCause::Objects { kind });
                }
            }
            Signal::Objects(kind, ObservedChange::One(changed)) => {
                self.handle_object(kind.1, changed, now);
            }
            Signal::Secrets(ObservedChange::All) => {
                self.ctx.forget_clusters();
                for name in self.tracked.keys() {
                    if !self.local_namespaces.contains(&name.namespace) {
                        let cause = ReconcileCause::Kubeconfig { secret: None };
                        self.queue.retry(name, now, cause);
                    }
                }
            }
            Signal::Secrets(ObservedChange::One(changed)) => self.handle_secret(&changed, now),
        }
        None
    }

    /// Takes in a write of a record, by any client.
    fn handle_record(&mut self, changed: &ChangedObject, now: Instant) {
        let selected = self.ctx.settings().namespace.as_ref();
        if selected.is_some_and(|selected| *selected != changed.namespace) {
            return;
        }
        let name = InstallationName {
            namespace: changed.namespace.clone(),
            name: changed.name.clone(),
        };
        let is_core_news = match self.tracked.get(&name) {
            Some(tracked) => tracked.affects_core_set(changed),
            None => changed.is_guarded && changed.is_being_deleted,
        };
        if is_core_news {
            self.trigger_core_set();
        }
        if changed.is_deleted {
            self.unbound_records.remove(&name);
            self.tracked.remove(&name);
            self.is_uncounted = true;
            self.remotes.recheck(&name);
            self.queue.forget(&name);
            return;
        }
        if self.unbound_records.contains(&name) {
            return;
        }
        let tracked = self.tracked.entry(name.clone()).or_default();
        match tracked.classify(changed) {
            RecordChange::Spec => {
                self.remotes.recheck(&name);
                let cause = ReconcileCause::Record { writer: None };
                self.queue.schedule(&name, now, cause);
                self.under_way.supersede(&name);
            }
            // Our own writes while it is reconciled are known when it ends.
            RecordChange::Status if self.queue.is_running(&name) => return,
            RecordChange::Status => {
                self.queue
                    .schedule(&name, now + SETTLED, ReconcileCause::Status)
            }
            RecordChange::Nothing => return,
        }
        tracked.remember_record(changed);
        // Clients that write records also read sources, so what is remembered of sources may be older.
        self.refresh_context(now);
    }

    /// Has the core set checked again.
    pub(super) fn trigger_core_set(&self) {
        self.core_contexts.send_replace(Arc::new(self.ctx.fresh()));
    }

    /// Takes in a write of an object with an owner label, by any client.
    fn handle_object(&mut self, kind: String, changed: ChangedObject, now: Instant) {
        let mut all = self.tracked.iter_mut();
        let Some((name, tracked)) = all.find(|(_, tracked)| tracked.owner == changed.owner) else {
            return;
        };
        if self.queue.is_running(name) {
            tracked.remember_object(kind, changed);
        } else if tracked.observe(&changed) {
            self.queue.schedule(name, now, drift_cause(kind, changed));
        }
    }

    /// Takes in a write of a Secret, which may be the kubeconfig of another cluster.
    fn handle_secret(&mut self, changed: &ChangedObject, now: Instant) {
        let namespace = &changed.namespace;
        let is_within = |name: &&InstallationName| name.namespace == *namespace;
        let was_nowhere = self.unbound_records.iter().any(|name| is_within(&name));
        let mut names = self.tracked.keys().filter(is_within).peekable();
        let is_of_none = !was_nowhere && names.peek().is_none();
        let is_here = self.local_namespaces.contains(namespace);
        let leads = |secret| self.ctx.forget_cluster(namespace, Some(secret));
        if is_here || is_of_none || !leads(&changed.name) {
            return;
        }
        for name in names {
            let secret = Some(changed.name.clone());
            let cause = ReconcileCause::Kubeconfig { secret };
            if changed.is_deleted {
                self.queue.schedule(name, now, cause);
            } else {
                self.queue.retry(name, now, cause);
            }
        }
        if was_nowhere {
            self.stale = Some(now);
        }
    }
}
