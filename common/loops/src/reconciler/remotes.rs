//! What is under way in other clusters. Each has workers of its own, and those that do not answer leave room for the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use common::api::names::InstallationName;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::pass::{CLUSTERS, WORKERS};

/// How many clusters that did not answer before are worked on at the same time.
const LOST: usize = CLUSTERS / 4;
/// How often live objects are read although nothing is due: no watch says what changes there.
const CHECKED: Duration = Duration::from_secs(600);

/// The other clusters, each by its namespace.
#[derive(Default)]
pub(super) struct Remotes {
    clusters: BTreeMap<String, Remote>,
    has_begun: bool,
    /// When the live objects of installations were read last.
    checked: BTreeMap<InstallationName, Instant>,
    /// What is under way; each ends with its namespace.
    pub(super) running: FuturesUnordered<LocalBoxFuture<'static, String>>,
}

struct Remote {
    slots: Arc<Semaphore>,
    running: usize,
    is_lost: bool,
}

impl Default for Remote {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(WORKERS)),
            running: 0,
            is_lost: false,
        }
    }
}

impl Remotes {
    /// Whether more may be begun in a cluster.
    pub(super) fn has_room(&self, namespace: &str) -> bool {
        let remote = self.clusters.get(namespace);
        if remote.is_some_and(|remote| remote.running >= WORKERS) {
            return false;
        }
        let is_lost = remote.is_some_and(|remote| remote.is_lost);
        let all = self.clusters.values();
        let lost = all.filter(|remote| remote.is_lost && remote.running > 0);
        self.running.len() < CLUSTERS && (!is_lost || lost.count() < LOST)
    }

    /// Whether nothing was ever begun before.
    pub(super) fn is_first(&mut self) -> bool {
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// Whether something was begun before.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Forgets what is not recorded any more; returns the namespaces whose clusters are not needed then.
    pub(super) fn forget_others(&mut self, recorded: &BTreeSet<InstallationName>) -> Vec<String> {
        self.checked.retain(|name, _| recorded.contains(name));
        let namespaces: BTreeSet<&String> = recorded.iter().map(|name| &name.namespace).collect();
        let clusters = self.clusters.extract_if(.., |namespace, remote| {
            remote.running == 0 && !namespaces.contains(namespace)
        });
        clusters.map(|(namespace, _)| namespace).collect()
    }

    /// Something begins in a cluster; its workers.
    pub(super) fn begin(&mut self, namespace: &str) -> Arc<Semaphore> {
        let remote = self.clusters.entry(namespace.to_owned()).or_default();
        remote.running += 1;
        Arc::clone(&remote.slots)
    }

    pub(super) fn end(&mut self, namespace: &str) {
        if let Some(remote) = self.clusters.get_mut(namespace) {
            remote.running = remote.running.saturating_sub(1);
        }
    }

    /// Whether a cluster answered.
    pub(super) fn answered(&mut self, namespace: &str, answered: bool) {
        if let Some(remote) = self.clusters.get_mut(namespace) {
            remote.is_lost = !answered;
        }
    }

    /// Whether the live objects of some of these were not read for long; they will be now.
    pub(super) fn check(&mut self, names: &[InstallationName], now: Instant) -> bool {
        let is_recent = |at: &Instant| now.duration_since(*at) < CHECKED.mul_f64(0.85);
        let mut names_checked = names.iter().map(|name| self.checked.get(name));
        if names_checked.all(|at| at.is_some_and(is_recent)) {
            return false;
        }
        let checked = names.iter().map(|name| (name.clone(), now));
        self.checked.extend(checked);
        true
    }

    /// The live objects of an installation are read whenever it is looked at next.
    pub(super) fn recheck(&mut self, name: &InstallationName) {
        self.checked.remove(name);
    }

    /// The same for all.
    pub(super) fn recheck_all(&mut self) {
        self.checked.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_that_do_not_answer_leave_room_for_others() {
        let mut remotes = Remotes::default();
        for number in 0..LOST {
            let namespace = number.to_string();
            remotes.begin(&namespace);
            remotes.answered(&namespace, false);
        }
        remotes.begin("dead");
        remotes.end("dead");
        assert!(remotes.has_room("dead"), "it was not asked yet");
        remotes.answered("dead", false);
        assert!(!remotes.has_room("dead") && remotes.has_room("alive"));
        for _ in 0..WORKERS {
            assert!(remotes.has_room("alive"));
            remotes.begin("alive");
        }
        assert!(!remotes.has_room("alive"), "it has workers of its own");
        remotes.end("0");
        assert!(remotes.has_room("dead"));
    }

    #[test]
    fn live_objects_are_read_every_ten_minutes_and_after_changes() {
        let (mut remotes, now) = (Remotes::default(), Instant::now());
        let name = |name: &str| InstallationName {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        let (a, b) = (name("a"), name("b"));
        let both = [a.clone(), b];
        assert!(remotes.check(&both, now));
        assert!(!remotes.check(&both, now + Duration::from_secs(60)));
        remotes.recheck(&a);
        assert!(remotes.check(&both, now + Duration::from_secs(60)));
        assert!(remotes.check(&both, now + Duration::from_secs(700)));
    }

    #[test]
    fn clusters_without_records_are_forgotten() {
        let mut remotes = Remotes::default();
        assert!(remotes.is_first() && !remotes.is_first());
        for namespace in ["shop", "gone", "busy"] {
            remotes.begin(namespace);
        }
        for namespace in ["shop", "gone"] {
            remotes.end(namespace);
        }
        let recorded = InstallationName {
            namespace: "shop".to_owned(),
            name: "a".to_owned(),
        };
        let recorded = BTreeSet::from([recorded]);
        assert_eq!(remotes.forget_others(&recorded), ["gone"]);
        remotes.end("busy");
        assert_eq!(remotes.forget_others(&recorded), ["busy"]);
    }
}
