//! The installations that are being reconciled: which of them work, which only wait, and which waits end because of a newer state.

use std::collections::{BTreeMap, BTreeSet};

use addons_operation::Interruption;
use common::api::names::InstallationName;

use crate::slots::{Lane, WAITING, WORKERS};

/// The most slots of a lane of this cluster for the installations of one namespace. Those of the system namespace may have all slots.
const SHARE: usize = WORKERS / 2;

/// The work under way.
#[derive(Default)]
pub(super) struct WorkUnderWay {
    begun: BTreeMap<InstallationName, BegunWork>,
    loads: BTreeMap<String, WorkLoad>,
}

struct BegunWork {
    part: Interruption,
    lane: Lane,
    is_waiting: bool,
    /// Whether its record has changed since.
    is_superseded: bool,
}

/// The work under way in one namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkLoad {
    guards: usize,
    changes: usize,
    looks: usize,
    /// The waiting installations that are not guards.
    waiting: usize,
}

/// The work under way in all namespaces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoadSums {
    /// The work in this cluster.
    here: WorkLoad,
    /// How many other clusters are worked on, and how many of these did not respond before.
    pub(super) others: usize,
    pub(super) lost: usize,
}

impl WorkLoad {
    fn lane_mut(&mut self, lane: Lane) -> &mut usize {
        match lane {
            Lane::Guards => &mut self.guards,
            Lane::Changes => &mut self.changes,
            Lane::Looks => &mut self.looks,
        }
    }

    /// Returns how many installations of a lane work.
    pub(super) fn working(mut self, lane: Lane) -> usize {
        *self.lane_mut(lane)
    }

    /// Returns whether any installation works.
    pub(super) fn is_working(self) -> bool {
        self.guards + self.changes + self.looks > 0
    }

    /// Returns whether no more installations of a lane may wait. Guards always may.
    pub(super) fn is_full(self, lane: Lane) -> bool {
        lane != Lane::Guards && self.waiting >= WAITING
    }
}

impl WorkUnderWay {
    /// Begins an installation, and returns its interruption.
    pub(super) fn begin(
        &mut self,
        name: &InstallationName,
        lane: Lane,
        whole: &Interruption,
    ) -> Interruption {
        let part = whole.part();
        *self.load_mut(&name.namespace).lane_mut(lane) += 1;
        let begun = BegunWork {
            part: part.clone(),
            lane,
            is_waiting: false,
            is_superseded: false,
        };
        self.begun.insert(name.clone(), begun);
        part
    }

    /// Records that an installation only waits from now on: it needs no slot, and ends if its record has changed.
    pub(super) fn wait(&mut self, name: &InstallationName) {
        let Some(begun) = self.begun.get_mut(name).filter(|begun| !begun.is_waiting) else {
            return;
        };
        begun.is_waiting = true;
        if begun.is_superseded {
            begun.part.supersede();
        }
        let lane = begun.lane;
        let load = self.load_mut(&name.namespace);
        *load.lane_mut(lane) = load.working(lane).saturating_sub(1);
        if lane != Lane::Guards {
            load.waiting += 1;
        }
    }

    /// Records that the record of an installation has changed: a wait for its former state ends at once, and work ends when it would
    /// wait.
    pub(super) fn supersede(&mut self, name: &InstallationName) {
        if let Some(begun) = self.begun.get_mut(name) {
            begun.is_superseded = true;
            if begun.is_waiting {
                begun.part.supersede();
            }
        }
    }

    /// Records that an installation has ended.
    pub(super) fn end(&mut self, name: &InstallationName) {
        let Some(begun) = self.begun.remove(name) else {
            return;
        };
        let load = self.load_mut(&name.namespace);
        match (begun.is_waiting, begun.lane) {
            (true, Lane::Guards) => {}
            (true, _) => load.waiting = load.waiting.saturating_sub(1),
            (false, lane) => *load.lane_mut(lane) = load.working(lane).saturating_sub(1),
        }
        if *load == WorkLoad::default() {
            self.loads.remove(&name.namespace);
        }
    }

    /// Returns the work under way in a namespace.
    pub(super) fn load(&self, namespace: &str) -> WorkLoad {
        self.loads.get(namespace).copied().unwrap_or_default()
    }

    /// Returns the work under way in all namespaces. `here`: the namespaces that stand for this cluster; `is_lost`: whether another
    /// cluster did not respond.
    pub(super) fn sums(&self, here: &BTreeSet<String>, is_lost: impl Fn(&str) -> bool) -> LoadSums {
        let mut sums = LoadSums::default();
        for (namespace, load) in &self.loads {
            if here.contains(namespace) {
                sums.here.guards += load.guards;
                sums.here.changes += load.changes;
                sums.here.looks += load.looks;
            } else if load.is_working() {
                sums.others += 1;
                sums.lost += usize::from(is_lost(namespace));
            }
        }
        sums
    }

    /// Returns how many installations of a lane work in a namespace of this cluster, or `None` if no more may begin there.
    pub(super) fn room_here(
        &self,
        sums: &LoadSums,
        namespace: &str,
        is_of_system: bool,
        lane: Lane,
    ) -> Option<usize> {
        let own = self.load(namespace);
        let working = own.working(lane);
        let share = if is_of_system { WORKERS } else { SHARE };
        let is_free = sums.here.working(lane) < WORKERS;
        (is_free && working < share && !own.is_full(lane)).then_some(working)
    }

    fn load_mut(&mut self, namespace: &str) -> &mut WorkLoad {
        self.loads.entry(namespace.to_owned()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(namespace: &str, name: usize) -> InstallationName {
        InstallationName {
            namespace: namespace.to_owned(),
            name: name.to_string(),
        }
    }

    fn room(under_way: &WorkUnderWay, namespace: &str, lane: Lane) -> Option<usize> {
        let here = ["system", "team", "other"].map(str::to_owned).into();
        let sums = under_way.sums(&here, |_| false);
        under_way.room_here(&sums, namespace, namespace == "system", lane)
    }

    #[test]
    fn what_waits_holds_no_slot_and_one_namespace_not_all_of_them() {
        let (mut under_way, whole) = (WorkUnderWay::default(), Interruption::default());
        for number in 0..SHARE {
            let lane = Lane::Changes;
            assert_eq!(room(&under_way, "team", lane), Some(number));
            under_way.begin(&name("team", number), lane, &whole);
        }
        assert_eq!(room(&under_way, "team", Lane::Changes), None);
        assert_eq!(room(&under_way, "other", Lane::Changes), Some(0));
        assert_eq!(room(&under_way, "team", Lane::Guards), Some(0));
        under_way.wait(&name("team", 0));
        assert_eq!(room(&under_way, "team", Lane::Changes), Some(SHARE - 1));
        for number in 0..SHARE {
            under_way.end(&name("team", number));
        }
        assert_eq!(under_way.load("team"), WorkLoad::default());
    }

    #[test]
    fn many_that_wait_keep_out_others_of_their_namespace_but_no_guard() {
        let (mut under_way, whole) = (WorkUnderWay::default(), Interruption::default());
        for number in 0..WAITING {
            let name = name("team", number);
            under_way.begin(&name, Lane::Changes, &whole);
            under_way.wait(&name);
            // Told twice, as by two of its objects.
            under_way.wait(&name);
        }
        assert_eq!(room(&under_way, "team", Lane::Changes), None);
        assert_eq!(room(&under_way, "team", Lane::Guards), Some(0));
        assert_eq!(room(&under_way, "other", Lane::Changes), Some(0));
        under_way.end(&name("team", 0));
        assert_eq!(room(&under_way, "team", Lane::Changes), Some(0));
    }

    #[test]
    fn a_newer_wish_ends_a_wait_and_no_work() {
        let (mut under_way, whole) = (WorkUnderWay::default(), Interruption::default());
        let (one, other) = (name("team", 1), name("team", 2));
        let works = under_way.begin(&one, Lane::Changes, &whole);
        let waits = under_way.begin(&other, Lane::Guards, &whole);
        under_way.wait(&other);
        for name in [&one, &other] {
            under_way.supersede(name);
        }
        assert!(!works.is_interrupted() && waits.is_interrupted());
        under_way.wait(&one);
        assert!(works.is_interrupted() && !whole.is_interrupted());
    }
}
