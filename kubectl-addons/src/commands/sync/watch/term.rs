//! The work of a leader: a pass over the directory whenever it or the cluster changed.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use addons_engine::drift::{self, Drift};
use addons_loops::election::LeaderRevision;
use addons_loops::fights::{Fights, TRUCE, record_contested};
use addons_operation::directory::found::DirectorySync;
use addons_operation::{Interruption, Records, name_of};
use addons_plan::inventory::Inventory;
use anyhow::Result;
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;
use common::directory::Directory;
use common::manifest::key::ObjectKey;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, interval_at, sleep_until};

use super::super::tree::WatchedTree;
use super::super::{PassResult, parse_directory, run_pass};
use crate::again::is_overtaken;
use crate::change::InstallationReports;
use crate::cli::sync::SyncArgs;
use crate::exit::Exit;
use crate::session::Session;
use crate::{failure, output};

/// The first pause between two repairs of an object in quick succession. It doubles each time, up to the interval.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Why a leader stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeadEnd {
    /// The program ends.
    Interrupted,
    /// The process no longer leads, or not with this content of the directory.
    Lost,
    /// The directory changed, so it is not known yet whether the process leads with the new content.
    Changed,
}

/// What a pass needs to know about earlier ones.
#[derive(Default)]
struct LeaderTerm {
    /// Whether the last pass deleted removed objects, which it only does an interval after a change.
    deleted: bool,
    /// Whether the last pass completed everything.
    done: bool,
    /// The records of the directory's installations after the last pass.
    records: Vec<AddonInstallation>,
    /// Differences that a pass left unchanged.
    known: BTreeSet<Drift>,
    /// The recently repaired objects, with the time and the pause before the repair.
    repaired: BTreeMap<ObjectKey, (Instant, Duration)>,
    /// Fields that were taken back from other managers.
    fights: Fights,
    /// Installations that are left alone until a time, because another manager keeps setting one of their fields back.
    contested: BTreeMap<String, Instant>,
    /// The last error of watching the cluster, which is printed only once.
    unwatched: Option<String>,
}

/// Makes passes while this process leads with the current content of the directory. When that ends, interrupts the running operation: its
/// progress is recorded, and the next leader does not wait for its locks.
pub async fn lead(
    session: &Session,
    args: &SyncArgs,
    tree: &mut WatchedTree,
    mut leading: watch::Receiver<Option<LeaderRevision>>,
    interruption: &Interruption,
) -> LeadEnd {
    let (own, is_lost) = (Some(tree.revision.clone()), Cell::new(false));
    let losing = async {
        let _ = leading.wait_for(|leads| *leads != own).await;
        is_lost.set(true);
        interruption.interrupt();
        pending::<()>().await;
    };
    let working = async {
        let mut term = LeaderTerm::default();
        let (mut drift, mut again) = (None, false);
        loop {
            // Read everything again: policies and the version of the cluster may have changed.
            let fresh = session.fresh();
            match term.pass(&fresh, args, tree, drift, interruption).await {
                Ok(true) => again = false,
                Ok(false) => return LeadEnd::Changed,
                // Look at what the other client did now: its records say that nothing needs a repair.
                Err(error) if !again && is_overtaken(&error) => {
                    (drift, again) = (None, true);
                    continue;
                }
                Err(error) => {
                    if Exit::from_error(&error) != Exit::Interrupted {
                        failure::report_failure(&error);
                    }
                }
            }
            if interruption.is_interrupted() {
                return LeadEnd::Interrupted;
            }
            tokio::select! {
                biased;
                () = interruption.wait_interrupted() => return LeadEnd::Interrupted,
                due = term.wait(session, tree, args.interval) => drift = due,
            }
        }
    };
    let end = tokio::select! {
        end = working => end,
        () = losing => LeadEnd::Lost,
    };
    match end {
        LeadEnd::Interrupted if is_lost.get() => LeadEnd::Lost,
        end => end,
    }
}

impl LeaderTerm {
    /// Reads the directory and makes a pass, or returns `false` if the directory changed. `drift` is the difference to repair.
    async fn pass(
        &mut self,
        session: &Session,
        args: &SyncArgs,
        tree: &mut WatchedTree,
        drift: Option<Drift>,
        interruption: &Interruption,
    ) -> Result<bool> {
        let was_done = std::mem::take(&mut self.done);
        let before = tree.revision.clone();
        let read = tree.read().await;
        if tree.revision != before {
            if let Err(error) = read {
                failure::report_failure(&error.into());
            }
            return Ok(false);
        }
        let is_old = tree.since.elapsed() >= args.interval;
        let mut sync = parse_directory(session, args, tree.path.clone(), read?);
        sync.keep_reason = (!is_old).then(|| {
            let interval = args.interval.as_secs();
            format!("the directory changed less than {interval}s ago")
        });
        let now = Instant::now();
        self.contested.retain(|_, until| *until > now);
        sync.contested = self.contested.keys().cloned().collect();
        let sync = Arc::new(sync);
        let drifted = drift.as_ref().filter(|_| was_done && self.deleted);
        let only = drifted.and_then(|drift| self.single_installation(drift));
        let passed = run_pass(session, args, &sync, only.as_ref(), Some(interruption)).await?;
        let PassResult {
            exit,
            is_nothing,
            reports,
        } = passed;
        self.deleted = is_old;
        if !is_nothing {
            self.known.clear();
        } else if let Some(drift) = drift {
            self.known.insert(drift);
        }
        self.records = read_installed(session, &sync).await?;
        self.count_fights(session, reports).await?;
        // Objects that another client applied after the pass match its record and show no drift, even if they come from another directory.
        // The result of a running operation is not known yet.
        let mut records = self.records.iter();
        self.done = exit == Exit::Done && records.all(|record| is_current(&sync.directory, record));
        Ok(true)
    }

    /// Counts the fields that were taken back from other managers. Too many repetitions are recorded and reported, and the installation is
    /// then left alone.
    async fn count_fights(
        &mut self,
        session: &Session,
        reports: InstallationReports,
    ) -> Result<()> {
        let now = Instant::now();
        for (name, report) in reports {
            let Some(sentence) = self.fights.record_repairs(&name, None, &report, now) else {
                continue;
            };
            output::warn(&sentence);
            self.contested.insert(name.name.clone(), now + TRUCE);
            let mut records = self.records.iter();
            if let Some(record) = records.find(|record| name_of(record) == name) {
                record_contested(session.ctx(), record, sentence).await?;
            }
        }
        let contested = &self.contested;
        self.records
            .retain(|record| !contested.contains_key(&name_of(record).name));
        Ok(())
    }

    /// Returns the installation of a drifted object if a pass over it alone is enough. If several objects drift at once, the second one
    /// causes a pass over everything.
    fn single_installation(&self, drift: &Drift) -> Option<InstallationName> {
        let mut others = self.repaired.iter().filter(|(key, _)| **key != drift.key);
        if others.any(|(_, (at, _))| at.elapsed() < FIRST_PAUSE) {
            return None;
        }
        let mut records = self.records.iter();
        let record = records.find(|record| {
            let inventory = Inventory::from_status(record.status.as_ref());
            inventory.objects.contains_key(&drift.key)
        });
        record.map(name_of)
    }

    /// Waits until a pass is due, and returns the drift that caused it, if any. An object that another client changes again and again waits
    /// longer each time, without delaying others. If the cluster cannot be watched, a pass is due at the next tick.
    async fn wait(
        &mut self,
        session: &Session,
        tree: &WatchedTree,
        interval: Duration,
    ) -> Option<Drift> {
        let mut held: BTreeMap<ObjectKey, (Instant, Drift)> = BTreeMap::new();
        let mut is_watched = true;
        let mut tick = interval_at(Instant::now() + interval, interval);
        loop {
            let next = held.values().min().cloned();
            let is_known =
                |drift: &Drift| self.known.contains(drift) || held.contains_key(&drift.key);
            let seen = tokio::select! {
                seen = next_drift(session, &self.records, &is_known), if is_watched => seen,
                drift = wait_for_pause(next) => {
                    self.record_repair(&drift.key, interval);
                    return Some(drift);
                }
                () = self.wait_until_due(tree, &mut tick) => return None,
            };
            let drift = match seen {
                Ok(drift) => drift,
                Err(error) => {
                    is_watched = false;
                    self.note_unwatched(error);
                    continue;
                }
            };
            self.unwatched = None;
            let pause = self.repair_pause(&drift.key, interval);
            if pause.is_zero() {
                self.record_repair(&drift.key, interval);
                return Some(drift);
            }
            held.insert(drift.key.clone(), (Instant::now() + pause, drift));
        }
    }

    /// Reports that the cluster cannot be watched, so that only another pass detects edits.
    fn note_unwatched(&mut self, error: anyhow::Error) {
        self.done = false;
        let error = error.context("edits in the cluster are not seen at once");
        let text = output::describe_chain(error.as_ref());
        if self.unwatched.as_ref() != Some(&text) {
            failure::report_failure(&error);
        }
        self.unwatched = Some(text);
    }

    /// Waits for the tick at which another pass has to follow the last one, or at which the directory changed.
    async fn wait_until_due(&self, tree: &WatchedTree, tick: &mut Interval) {
        loop {
            tick.tick().await;
            let now = Instant::now();
            let is_over = self.contested.values().any(|until| *until <= now);
            if is_over || !self.done || !self.deleted || tree.is_changed() {
                return;
            }
        }
    }

    /// Returns how long the repair of an object waits. Zero, unless it was repaired recently and another client undid that.
    fn repair_pause(&self, key: &ObjectKey, interval: Duration) -> Duration {
        let repair = self.repaired.get(key);
        let recent = repair.filter(|repair| is_recent(repair, interval));
        recent.map_or(Duration::ZERO, |(_, pause)| {
            (*pause * 2).max(FIRST_PAUSE).min(interval)
        })
    }

    /// Records that an object is repaired now.
    fn record_repair(&mut self, key: &ObjectKey, interval: Duration) {
        let pause = self.repair_pause(key, interval);
        self.repaired
            .retain(|_, repair| is_recent(repair, interval));
        self.repaired.insert(key.clone(), (Instant::now(), pause));
    }
}

/// Whether a repair is recent enough that a new drift of the object counts as a repetition.
fn is_recent((before, pause): &(Instant, Duration), interval: Duration) -> bool {
    before.elapsed() < interval.max(*pause * 2)
}

/// Waits for the drift whose pause ends first. Never returns if there is none.
async fn wait_for_pause(held: Option<(Instant, Drift)>) -> Drift {
    match held {
        Some((due, drift)) => {
            sleep_until(due).await;
            drift
        }
        None => pending().await,
    }
}

/// Returns the records of the directory's installations after a pass.
async fn read_installed(session: &Session, sync: &DirectorySync) -> Result<Vec<AddonInstallation>> {
    let records = Records::read(session.ctx()).await?;
    let of_directory = records.all.into_iter().filter(|record| {
        let directory = record.spec.addon_ref.directory.as_ref();
        directory == Some(&sync.path) && !record.spec.suspend
    });
    Ok(of_directory.collect())
}

/// Whether an installation was applied from the current directory and no operation is running on it. Always `true` for a removed add-on,
/// which may have to stay.
fn is_current(directory: &Directory, record: &AddonInstallation) -> bool {
    let status = record.status.as_ref();
    if status.is_some_and(|status| status.operation.is_some()) {
        return false;
    }
    let mut addons = directory.addons.iter();
    let addon = addons.find(|addon| record.metadata.name.as_ref() == Some(&addon.installation));
    let installed = record.installed();
    addon.is_none_or(|addon| installed.is_some_and(|it| it.manifest_hash == addon.digest))
}

/// Waits for the next drift.
async fn next_drift(
    session: &Session,
    records: &[AddonInstallation],
    is_known: &(dyn Fn(&Drift) -> bool + Send + std::marker::Sync),
) -> Result<Drift> {
    let cluster = session.ctx().cluster().await?;
    Ok(drift::next_drift(cluster, records, is_known).await?)
}

#[cfg(test)]
mod tests {
    use common::directory::DirectoryEntry;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_another_client_applied_since_the_pass_is_noticed() {
        let directory = Directory {
            addons: vec![DirectoryEntry {
                installation: "one".to_owned(),
                digest: "here".to_owned(),
                ..DirectoryEntry::default()
            }],
        };
        for (name, installed, expected) in [
            ("one", json!({"version": "", "manifestHash": "here"}), true),
            (
                "one",
                json!({"version": "", "manifestHash": "of another"}),
                false,
            ),
            ("one", json!(null), false),
            (
                "gone",
                json!({"version": "", "manifestHash": "of another"}),
                true,
            ),
        ] {
            let record = json!({"metadata": {"name": name}, "spec": {"addonRef": {"name": name}},
                "status": {"installed": installed}});
            let read: AddonInstallation = serde_json::from_value(record.clone()).unwrap();
            assert_eq!(is_current(&directory, &read), expected, "{record}");
        }
        let record = json!({"metadata": {"name": "one"}, "spec": {"addonRef": {"name": "one"}}, "status": {
            "installed": {"version": "", "manifestHash": "here"},
            "operation": {"id": "1", "verb": "upgrade", "holder": "another", "leaseSeconds": 30, "startedAt": "2026-11-28T01:00:00Z", "renewedAt": "2026-11-28T01:00:00Z"}}});
        let read: AddonInstallation = serde_json::from_value(record).unwrap();
        assert!(!is_current(&directory, &read), "it is worked on");
    }
}
