//! The work under way in other clusters. Each has workers of its own, and clusters that do not respond leave room for the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use common::api::names::InstallationName;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;

use super::under_way::{LoadSums, WorkUnderWay};
use crate::pass::CLUSTERS;
use crate::slots::{Lane, Slots, WORKERS};

/// The most clusters that did not respond before and are worked on at the same time.
const LOST: usize = CLUSTERS / 4;
/// How often live objects are read even if nothing is due: they are not watched in other clusters.
const CHECKED: Duration = Duration::from_secs(600);

/// The other clusters, each by its namespace.
#[derive(Default)]
pub(super) struct Remotes {
    clusters: BTreeMap<String, Remote>,
    has_begun: bool,
    /// When the live objects of installations were last read.
    checked: BTreeMap<InstallationName, Instant>,
    /// The calls in progress. Each ends with its namespace.
    pub(super) running: FuturesUnordered<LocalBoxFuture<'static, String>>,
}

#[derive(Default)]
struct Remote {
    slots: Arc<Slots>,
    /// The calls that have not ended, including those in which all installations only wait.
    running: usize,
    is_lost: bool,
}

impl Remotes {
    /// Returns how many installations of a lane work in a cluster, or `None` if no more may begin there.
    pub(super) fn room(
        &self,
        under_way: &WorkUnderWay,
        sums: &LoadSums,
        namespace: &str,
        lane: Lane,
    ) -> Option<usize> {
        let own = under_way.load(namespace);
        let (working, is_lost) = (own.working(lane), self.is_lost(namespace));
        let is_worked_on = own.is_working();
        let others = sums.others - usize::from(is_worked_on);
        let lost = sums.lost - usize::from(is_worked_on && is_lost);
        let is_free = others < CLUSTERS && (!is_lost || lost < LOST);
        (is_free && working < WORKERS && !own.is_full(lane)).then_some(working)
    }

    /// Returns whether a cluster did not respond the last time.
    pub(super) fn is_lost(&self, namespace: &str) -> bool {
        let remote = self.clusters.get(namespace);
        remote.is_some_and(|remote| remote.is_lost)
    }

    /// Records that something begins. Returns whether nothing was begun before.
    pub(super) fn mark_begun(&mut self) -> bool {
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// Returns whether something was begun before.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Forgets installations that are no longer recorded. Returns the namespaces whose clusters are no longer needed.
    pub(super) fn forget_others(&mut self, recorded: &BTreeSet<InstallationName>) -> Vec<String> {
        self.checked.retain(|name, _| recorded.contains(name));
        let namespaces: BTreeSet<&String> = recorded.iter().map(|name| &name.namespace).collect();
        let clusters = self.clusters.extract_if(.., |namespace, remote| {
            remote.running == 0 && !namespaces.contains(namespace)
        });
        clusters.map(|(namespace, _)| namespace).collect()
    }

    /// Begins a call in a cluster, and returns the slots of the cluster.
    pub(super) fn begin(&mut self, namespace: &str) -> Arc<Slots> {
        let remote = self.clusters.entry(namespace.to_owned()).or_default();
        remote.running += 1;
        Arc::clone(&remote.slots)
    }

    pub(super) fn end(&mut self, namespace: &str) {
        if let Some(remote) = self.clusters.get_mut(namespace) {
            remote.running = remote.running.saturating_sub(1);
        }
    }

    /// Records whether a cluster responded.
    pub(super) fn record_response(&mut self, namespace: &str, answered: bool) {
        if let Some(remote) = self.clusters.get_mut(namespace) {
            remote.is_lost = !answered;
        }
    }

    /// Returns whether the live objects of one of these were not read for long. Then they count as read now.
    pub(super) fn mark_checked<'a>(
        &mut self,
        names: impl Iterator<Item = &'a InstallationName> + Clone,
        now: Instant,
    ) -> bool {
        let is_recent = |at: &Instant| now.duration_since(*at) < CHECKED.mul_f64(0.85);
        let mut names_checked = names.clone().map(|name| self.checked.get(name));
        if names_checked.all(|at| at.is_some_and(is_recent)) {
            return false;
        }
        self.checked.extend(names.map(|name| (name.clone(), now)));
        true
    }

    /// Has the live objects of an installation read at its next look.
    pub(super) fn recheck(&mut self, name: &InstallationName) {
        self.checked.remove(name);
    }

    /// Has the live objects of all installations read at their next look.
    pub(super) fn recheck_all(&mut self) {
        self.checked.clear();
    }
}

#[cfg(test)]
mod tests {
    use addons_operation::Interruption;

    use super::*;

    fn name(namespace: &str, name: usize) -> InstallationName {
        InstallationName {
            namespace: namespace.to_owned(),
            name: name.to_string(),
        }
    }

    fn room(
        remotes: &Remotes,
        under_way: &WorkUnderWay,
        namespace: &str,
        lane: Lane,
    ) -> Option<usize> {
        let sums = under_way.sums(&BTreeSet::new(), |namespace| remotes.is_lost(namespace));
        remotes.room(under_way, &sums, namespace, lane)
    }

    #[test]
    fn clusters_that_do_not_answer_leave_room_for_others() {
        let (mut remotes, mut under_way) = (Remotes::default(), WorkUnderWay::default());
        let whole = Interruption::default();
        let lane = Lane::Looks;
        for number in 0..LOST {
            let namespace = number.to_string();
            remotes.begin(&namespace);
            under_way.begin(&name(&namespace, 0), lane, &whole);
            remotes.record_response(&namespace, false);
        }
        remotes.begin("dead");
        assert_eq!(
            room(&remotes, &under_way, "dead", lane),
            Some(0),
            "it was not asked yet"
        );
        remotes.record_response("dead", false);
        assert_eq!(room(&remotes, &under_way, "dead", lane), None);
        for number in 0..WORKERS {
            assert_eq!(room(&remotes, &under_way, "alive", lane), Some(number));
            remotes.begin("alive");
            under_way.begin(&name("alive", number), lane, &whole);
        }
        assert_eq!(
            room(&remotes, &under_way, "alive", lane),
            None,
            "its slots are taken"
        );
        assert_eq!(room(&remotes, &under_way, "alive", Lane::Guards), Some(0));
        under_way.end(&name("0", 0));
        assert_eq!(room(&remotes, &under_way, "dead", lane), Some(0));
    }

    #[test]
    fn clusters_in_which_everything_waits_leave_room_for_others() {
        let (mut remotes, mut under_way) = (Remotes::default(), WorkUnderWay::default());
        let whole = Interruption::default();
        for number in 0..CLUSTERS {
            let namespace = number.to_string();
            remotes.begin(&namespace);
            under_way.begin(&name(&namespace, 0), Lane::Changes, &whole);
        }
        assert_eq!(room(&remotes, &under_way, "new", Lane::Guards), None);
        under_way.wait(&name("0", 0));
        assert_eq!(room(&remotes, &under_way, "new", Lane::Guards), Some(0));
    }

    #[test]
    fn live_objects_are_read_every_ten_minutes_and_after_changes() {
        let (mut remotes, now) = (Remotes::default(), Instant::now());
        let (a, b) = (name("shop", 1), name("shop", 2));
        let both = [a.clone(), b];
        assert!(remotes.mark_checked(both.iter(), now));
        assert!(!remotes.mark_checked(both.iter(), now + Duration::from_secs(60)));
        remotes.recheck(&a);
        assert!(remotes.mark_checked(both.iter(), now + Duration::from_secs(60)));
        assert!(remotes.mark_checked(both.iter(), now + Duration::from_secs(700)));
    }

    #[test]
    fn clusters_without_records_are_forgotten() {
        let mut remotes = Remotes::default();
        assert!(remotes.mark_begun() && !remotes.mark_begun());
        for namespace in ["shop", "gone", "busy"] {
            remotes.begin(namespace);
        }
        for namespace in ["shop", "gone"] {
            remotes.end(namespace);
        }
        let recorded = BTreeSet::from([name("shop", 1)]);
        assert_eq!(remotes.forget_others(&recorded), ["gone"]);
        remotes.end("busy");
        assert_eq!(remotes.forget_others(&recorded), ["busy"]);
    }
}
