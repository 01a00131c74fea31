//! The waves in which a change of the rules or of the list reaches the clusters (semantics 14.8).
//!
//! A cluster is stored as begun before anything is written there, so that the next leader continues from there. A cluster that was added
//! later, and one whose records were edited, are not part of the change: no one waits for them, and they do not wait.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::CoreSet;
use crate::fleet::{MaxUnavailable, RolloutSettings};
use common::api::conditions::{READY, find_raised};
use common::api::installation::AddonInstallation;
use common::manifest::digest::digest;

/// How a change reaches the clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreRollout {
    /// How many clusters are changed at a time, and how long the first ones have to stay ready.
    pub rollout: RolloutSettings,
    /// The namespaces of the clusters that come first, in this order. The others follow by name.
    pub first: Vec<String>,
    /// How long a cluster may take to get ready before it has failed.
    pub deadline: Duration,
    /// How many clusters may fail. The waves are then those of the other clusters. With more failures, no wave begins any more.
    pub failures: usize,
}

/// How a change reaches the clusters if the ConfigMap says nothing else.
pub const DEFAULT: CoreRollout = CoreRollout {
    rollout: RolloutSettings {
        canaries: 1,
        max_unavailable: Some(MaxUnavailable::Percent(10)),
        soak: Duration::from_secs(300),
    },
    first: Vec::new(),
    deadline: Duration::from_secs(3600),
    failures: 1,
};

/// How often the time at which a cluster was seen not to be ready is stored.
const NOTED: SignedDuration = SignedDuration::from_secs(30);

/// How far a change has reached. Clusters are named by their namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutProgress {
    /// The [`identity`] of the rules, the list and the content that are rolled out.
    pub of: String,
    /// The clusters in which the change was begun, and when.
    #[serde(default)]
    pub begun: BTreeMap<String, Timestamp>,
    /// The clusters that wait for a later wave.
    #[serde(default)]
    pub waiting: BTreeSet<String>,
    /// The clusters in which the change was begun and whose objects were not ready at the last look, with the time of that look.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unready: BTreeMap<String, Timestamp>,
}

/// The state of a cluster with respect to its core set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreSetStanding {
    /// The cluster could not be looked at, or its core set is unknown.
    Unknown,
    /// Something has to be changed.
    Due,
    /// The same, and the maintenance windows of the cluster are closed until this time; `None` if they never open.
    OutsideWindow(Option<Timestamp>),
    /// Its records match its core set. If all of them are ready, the time since when they are.
    Followed(Option<Timestamp>),
}

impl CoreSetStanding {
    /// Returns whether something has to be changed, now or in a maintenance window.
    #[must_use]
    pub fn is_due(&self) -> bool {
        matches!(self, Self::Due | Self::OutsideWindow(_))
    }
}

/// The reason why the next wave waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutGate {
    /// Not all core add-ons of this cluster are ready.
    NotReady(String),
    /// The core add-ons of a cluster have to stay ready for a while.
    Soaking {
        /// The namespace of the cluster.
        namespace: String,
        /// The remaining time.
        left: Duration,
    },
    /// The other clusters are done, and the maintenance windows of this one are closed.
    OutsideWindow {
        /// The namespace of the cluster.
        namespace: String,
        /// When they open; `None` if they never do.
        opens: Option<Timestamp>,
    },
}

/// Returns a digest of the rules, the list, and the catalogue entries of the add-ons in them. `content`: the digests of these entries.
#[must_use]
pub fn identity(rules: Option<&str>, addons: Option<&str>, content: &BTreeSet<String>) -> String {
    digest(&json!([rules, addons, content]))
}

impl RolloutProgress {
    /// Returns whether the change of a cluster waits for a later wave.
    #[must_use]
    pub fn is_waiting(&self, namespace: &str) -> bool {
        self.waiting.contains(namespace)
    }

    /// Begins every part of the change that may begin now. Returns the new progress, and why the next wave waits. `of`: the identity of
    /// the change; `clusters`: all clusters that have a core set.
    #[must_use]
    pub fn advance(
        &self,
        of: &str,
        clusters: &BTreeMap<String, CoreSetStanding>,
        waves: &CoreRollout,
        now: Timestamp,
    ) -> (Self, Option<RolloutGate>) {
        let mut next = self.clone();
        if self.of != of {
            next = Self::start(of, clusters);
        }
        next.begun.retain(|one, _| clusters.contains_key(one));
        next.unready.retain(|one, _| next.begun.contains_key(one));
        next.waiting.retain(|one| {
            let standing = clusters.get(one);
            matches!(
                standing,
                Some(
                    CoreSetStanding::Due
                        | CoreSetStanding::OutsideWindow(_)
                        | CoreSetStanding::Unknown
                )
            )
        });
        let gate = next.begin(clusters, waves, now);
        let gate = gate.or_else(|| next.find_closed(clusters));
        (next, gate)
    }

    /// Returns the waiting cluster whose maintenance windows open first.
    fn find_closed(&self, clusters: &BTreeMap<String, CoreSetStanding>) -> Option<RolloutGate> {
        let waiting = self.waiting.iter();
        let closed = waiting.filter_map(|one| match clusters.get(one) {
            Some(CoreSetStanding::OutsideWindow(opens)) => Some((*opens, one)),
            _ => None,
        });
        let first = closed.min_by_key(|(opens, _)| opens.unwrap_or(Timestamp::MAX));
        first.map(|(opens, namespace)| RolloutGate::OutsideWindow {
            namespace: namespace.clone(),
            opens,
        })
    }

    /// Returns whether a wave begins that had to wait for others. Then the live objects of those others decide, because records only say
    /// how the last operation ended. `before`: the progress until now.
    #[must_use]
    pub fn begins_next_wave(&self, before: &Self) -> bool {
        let mut begun = self.begun.keys();
        self.of == before.of
            && !before.begun.is_empty()
            && begun.any(|one| !before.begun.contains_key(one))
    }

    /// Restarts the soak time of a cluster because its objects are not ready now. This is stored at most once every `NOTED`.
    pub fn restart_soak(&mut self, namespace: &str, now: Timestamp) {
        let noted = self.unready.get(namespace);
        let is_known = noted.is_some_and(|noted| now.duration_since(*noted) < NOTED);
        if !is_known {
            self.unready.insert(namespace.to_owned(), now);
        }
    }

    /// Returns whether the progress has to be stored. If no cluster waits, it does not need to be.
    #[must_use]
    pub fn needs_storing(&self, stored: &Self) -> bool {
        self != stored && !(self.waiting.is_empty() && stored.waiting.is_empty())
    }

    /// Returns the initial progress: every cluster that the change affects, or may affect, waits.
    fn start(of: &str, clusters: &BTreeMap<String, CoreSetStanding>) -> Self {
        let mut waiting = BTreeSet::new();
        if clusters.values().any(CoreSetStanding::is_due) {
            let concerned = clusters
                .iter()
                .filter(|(_, one)| !matches!(one, CoreSetStanding::Followed(_)));
            waiting.extend(concerned.map(|(namespace, _)| namespace.clone()));
        }
        Self {
            of: of.to_owned(),
            begun: BTreeMap::new(),
            waiting,
            unready: BTreeMap::new(),
        }
    }

    /// Returns the clusters in which the change was begun longer than `deadline` ago and that are not ready.
    fn failed_clusters(
        &self,
        clusters: &BTreeMap<String, CoreSetStanding>,
        deadline: Duration,
        now: Timestamp,
    ) -> BTreeSet<String> {
        let is_late = |begun: &Timestamp| {
            let since = Duration::try_from(now.duration_since(*begun)).unwrap_or_default();
            since >= deadline
        };
        let is_ready =
            |one: &str| matches!(clusters.get(one), Some(CoreSetStanding::Followed(Some(_))));
        let failed = self
            .begun
            .iter()
            .filter(|(namespace, begun)| is_late(begun) && !is_ready(namespace));
        failed.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Begins the first wave that is not complete, if the waves before it allow that.
    fn begin(
        &mut self,
        clusters: &BTreeMap<String, CoreSetStanding>,
        waves: &CoreRollout,
        now: Timestamp,
    ) -> Option<RolloutGate> {
        let failed = self.failed_clusters(clusters, waves.deadline, now);
        let is_left_out = |one: &String| failed.len() <= waves.failures && failed.contains(one);
        let mut order: Vec<(Option<Timestamp>, String)> = self
            .begun
            .iter()
            .filter(|(namespace, _)| !is_left_out(namespace))
            .map(|(namespace, at)| (Some(*at), namespace.clone()))
            .collect();
        order.sort();
        let is_due = |one: &&String| clusters.get(*one) == Some(&CoreSetStanding::Due);
        let mut due: Vec<_> = self.waiting.iter().filter(is_due).cloned().collect();
        due.sort_by_key(|one| {
            let place = waves.first.iter().position(|first| first == one);
            place.unwrap_or(waves.first.len())
        });
        order.extend(due.into_iter().map(|namespace| (None, namespace)));
        let last = order.len();
        for wave in waves.rollout.waves(last) {
            let (end, soak) = (wave.clusters.end, wave.gate.unwrap_or_default());
            let Some(members) = order.get(wave.clusters) else {
                continue;
            };
            let new = members.iter().filter(|(at, _)| at.is_none());
            let new: Vec<String> = new.map(|(_, namespace)| namespace.clone()).collect();
            if let Some(first) = new.first().cloned() {
                for namespace in new {
                    self.waiting.remove(&namespace);
                    self.begun.insert(namespace, now);
                }
                return (end < last).then_some(RolloutGate::NotReady(first));
            }
            let waits = members.iter().find_map(|(at, namespace)| {
                let since = (*at).max(self.unready.get(namespace).copied());
                find_gate(clusters.get(namespace), namespace, since, soak, now)
            });
            if waits.is_some() {
                return waits.filter(|_| order.iter().any(|(at, _)| at.is_none()));
            }
        }
        None
    }
}

/// Returns why a cluster in which the change was begun keeps the next wave waiting. `begun`: when it was begun, or last seen not to be
/// ready.
fn find_gate(
    standing: Option<&CoreSetStanding>,
    namespace: &str,
    begun: Option<Timestamp>,
    soak: Duration,
    now: Timestamp,
) -> Option<RolloutGate> {
    let namespace = namespace.to_owned();
    let Some(CoreSetStanding::Followed(Some(ready))) = standing else {
        return Some(RolloutGate::NotReady(namespace));
    };
    let since = begun.map_or(*ready, |begun| begun.max(*ready));
    let stayed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    let left = soak.checked_sub(stayed).filter(|left| !left.is_zero())?;
    Some(RolloutGate::Soaking { namespace, left })
}

/// Returns since when all listed core add-ons of a cluster are ready in the state that their records ask for, or `None` if one is not.
/// Suspended installations and those that are not core are not waited for.
#[must_use]
pub fn ready_since(set: &CoreSet, records: &[&AddonInstallation]) -> Option<Timestamp> {
    let mut since = Timestamp::MIN;
    for name in set.addons.keys() {
        let mut all = records.iter();
        let record = all.find(|record| record.metadata.name.as_deref() == Some(name))?;
        if record.spec.core_addon && !record.spec.suspend {
            since = since.max(ready_at(record)?);
        }
    }
    Some(since)
}

fn ready_at(record: &AddonInstallation) -> Option<Timestamp> {
    let status = record.status.as_ref()?;
    let is_new = status.observed_generation != record.metadata.generation;
    let ready = find_raised(&status.conditions, READY).filter(|_| !is_new)?;
    status
        .operation
        .is_none()
        .then_some(ready.last_transition_time.0)
}

#[cfg(test)]
mod tests;
