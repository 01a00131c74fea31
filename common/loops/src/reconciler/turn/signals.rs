//! Takes in what watches see, and decides what is checked because of it.

use std::sync::Arc;
use std::time::Duration;

use addons_engine::changes::{Change, Changed};
use common::api::names::InstallationName;
use tokio::time::Instant;

use super::Turn;
use crate::queue::Why;
use crate::tracked::News;

/// How long a record that another client writes is left alone. If that client dies, its lock has expired by then.
const SETTLED: Duration = Duration::from_secs(20);

/// Group and kind of objects.
pub(super) type Kind = (String, String);

/// A change that a watch saw.
pub(in crate::reconciler) enum Signal {
    Records(Change),
    Catalogues,
    /// The rules or the list of core add-ons.
    Core,
    Objects(Kind, Change),
    Secrets(Change),
}

impl Turn {
    /// Takes in a change that a watch saw.
    pub(in crate::reconciler) fn take(&mut self, signal: Signal) {
        let now = Instant::now();
        match signal {
            Signal::Records(Change::All) => {
                self.stale = Some(now);
                self.is_missed = true;
            }
            Signal::Records(Change::One(changed)) => self.record(&changed, now),
            Signal::Core => self.follow_core(),
            Signal::Catalogues => {
                self.read_again(now);
                // The catalogues are checked together with the records.
                self.stale = Some(now);
                self.remotes.recheck_all();
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
            Signal::Secrets(Change::All) => {
                self.ctx.forget_clusters();
                for name in self.tracked.keys() {
                    if !self.here.contains(&name.namespace) {
                        self.queue.retry(name, now);
                    }
                }
            }
            Signal::Secrets(Change::One(changed)) => self.secret(&changed, now),
        }
    }

    /// Takes in a write of a record, by any client.
    fn record(&mut self, changed: &Changed, now: Instant) {
        let selected = self.ctx.settings().namespace.as_ref();
        if selected.is_some_and(|selected| *selected != changed.namespace) {
            return;
        }
        let name = InstallationName {
            namespace: changed.namespace.clone(),
            name: changed.name.clone(),
        };
        let is_core_news = match self.tracked.get(&name) {
            Some(tracked) => tracked.is_core_news(changed),
            None => changed.is_guarded && changed.is_going,
        };
        if is_core_news {
            self.follow_core();
        }
        if changed.is_gone {
            self.elsewhere.remove(&name);
            self.tracked.remove(&name);
            self.remotes.recheck(&name);
            self.queue.forget(&name);
            return;
        }
        if self.elsewhere.contains(&name) {
            return;
        }
        let tracked = self.tracked.entry(name.clone()).or_default();
        match tracked.news(changed) {
            News::Spec => {
                self.remotes.recheck(&name);
                self.queue.ask(&name, now, Why::Changed);
                self.under_way.supersede(&name);
            }
            // Our own writes while it is reconciled are known when it ends.
            News::Status if self.queue.is_running(&name) => return,
            News::Status => self.queue.ask(&name, now + SETTLED, Why::Drifted),
            News::Nothing => return,
        }
        tracked.note(changed);
        // Clients that write records also read sources, so what is remembered of sources may be older.
        self.read_again(now);
    }

    /// Has the core set checked again.
    pub(super) fn follow_core(&self) {
        self.core.send_replace(Arc::new(self.ctx.fresh()));
    }

    /// Takes in a write of an object with an owner label, by any client.
    fn object(&mut self, changed: Changed, now: Instant) {
        let mut all = self.tracked.iter_mut();
        let Some((name, tracked)) = all.find(|(_, tracked)| tracked.owner == changed.owner) else {
            return;
        };
        if self.queue.is_running(name) {
            tracked.see(changed);
        } else if tracked.is_drift(&changed) {
            self.queue.ask(name, now, Why::Damaged);
        }
    }

    /// Takes in a write of a Secret, which may be the kubeconfig of another cluster.
    fn secret(&mut self, changed: &Changed, now: Instant) {
        let namespace = &changed.namespace;
        let is_within = |name: &&InstallationName| name.namespace == *namespace;
        let was_nowhere = self.elsewhere.iter().any(|name| is_within(&name));
        let mut names = self.tracked.keys().filter(is_within).peekable();
        let is_of_none = !was_nowhere && names.peek().is_none();
        let is_here = self.here.contains(namespace);
        let leads = |secret| self.ctx.forget_cluster(namespace, Some(secret));
        if is_here || is_of_none || !leads(&changed.name) {
            return;
        }
        for name in names {
            if changed.is_gone {
                self.queue.ask(name, now, Why::Asked);
            } else {
                self.queue.retry(name, now);
            }
        }
        if was_nowhere {
            self.stale = Some(now);
        }
    }
}
