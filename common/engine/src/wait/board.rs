//! The state of the objects of one kind and namespace that an operation waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use addons_plan::readiness::blocker::Blocker;
use addons_plan::readiness::health_check::HealthCheck;
use addons_plan::readiness::{
    ContextNeed, Readiness, ReadinessStatus, assess_missing, called_namespaces,
};
use common::manifest::key::ObjectKey;

use super::super::event::Event;
use super::super::facts::ReadinessFacts;
use super::super::watch::Observation;

/// How long an object is pending before the cause is searched.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a deleted object may take to be recreated by its controller or by us.
const RECREATION_TIME: Duration = Duration::from_secs(2);
/// How long a found cause is valid.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// A [`Board`] that several futures of one task update.
pub(super) struct SharedBoard<'a> {
    board: Mutex<Board<'a>>,
    /// Notified when a fact has to be read.
    pub(super) facts_missing: Notify,
    /// Notified when endpoints have to be read.
    pub(super) endpoints_missing: Notify,
}

impl<'a> SharedBoard<'a> {
    pub(super) fn new(board: Board<'a>) -> Self {
        Self {
            board: Mutex::new(board),
            facts_missing: Notify::new(),
            endpoints_missing: Notify::new(),
        }
    }

    pub(super) fn into_board(self) -> Board<'a> {
        self.board
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the board. The guard is never held across an await.
    pub(super) fn lock(&self) -> MutexGuard<'_, Board<'a>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes a watch event. Returns whether no object is pending.
    pub(super) fn process(&self, seen: Observation, now: Timestamp) -> bool {
        let mut board = self.lock();
        let is_over = board.process(seen, now);
        let lacks = board.missing_needs();
        if lacks.contains(&ContextNeed::Endpoints) {
            self.endpoints_missing.notify_one();
        }
        if !lacks.is_empty() {
            self.facts_missing.notify_one();
        }
        is_over
    }
}

/// The state of the objects.
pub(super) struct Board<'a> {
    pub(super) entries: BTreeMap<&'a ObjectKey, BoardEntry>,
    pub(super) facts: ReadinessFacts,
    /// Why the objects cannot be watched at the moment.
    pub(super) lost: Option<String>,
    events: &'a (dyn Fn(Event) + Send + Sync),
}

pub(super) struct BoardEntry {
    /// The health check for it.
    check: Option<Arc<HealthCheck>>,
    /// The readiness that was reported, with the blocker's message.
    pub(super) readiness: Readiness,
    /// The message without the blocker's.
    message: String,
    /// The last known object; `None` if it was never seen, or created again since.
    pub(super) object: Option<Value>,
    is_there: bool,
    /// Since when the object does not exist although it was applied.
    gone_since: Option<Instant>,
    /// Whether its end is known although the watch did not show it.
    has_ended: bool,
    is_reported: bool,
    /// When it was first found not to be ready.
    pending_since: Instant,
    searched_at: Option<Instant>,
    blocker: Option<Blocker>,
}

impl<'a> Board<'a> {
    pub(super) fn new(
        targets: &BTreeMap<&'a ObjectKey, Option<Arc<HealthCheck>>>,
        events: &'a (dyn Fn(Event) + Send + Sync),
    ) -> Self {
        let begun = Instant::now();
        let entry = |check: &Option<Arc<HealthCheck>>| BoardEntry {
            check: check.clone(),
            readiness: assess_missing(None, false),
            message: assess_missing(None, false).message,
            object: None,
            is_there: false,
            gone_since: None,
            has_ended: false,
            is_reported: false,
            pending_since: begun,
            searched_at: None,
            blocker: None,
        };
        Self {
            entries: targets
                .iter()
                .map(|(key, check)| (*key, entry(check)))
                .collect(),
            facts: ReadinessFacts::default(),
            lost: None,
            events,
        }
    }

    /// Processes a watch event. Returns whether no object is pending.
    pub(super) fn process(&mut self, seen: Observation, now: Timestamp) -> bool {
        self.lost = None;
        self.facts.begun.get_or_insert(now);
        match seen {
            Observation::Listed(objects) => {
                let there: BTreeSet<String> = objects.iter().filter_map(object_name).collect();
                let gone: Vec<&ObjectKey> = self
                    .entries
                    .keys()
                    .filter(|key| !there.contains(&key.name))
                    .copied()
                    .collect();
                for key in gone {
                    self.process_deletion(key, None);
                }
                for object in objects {
                    self.process_object(object, now);
                }
            }
            Observation::Changed(object) => self.process_object(object, now),
            Observation::Deleted(object) => {
                if let Some(key) = self.find_key(&object) {
                    self.process_deletion(key, Some(object));
                }
            }
            Observation::Lost(why) => self.lost = Some(why),
        }
        self.is_over()
    }

    /// Assesses objects again after time has passed or facts were read. Returns whether no object is pending.
    pub(super) fn reassess(&mut self, now: Timestamp) -> bool {
        let pending: Vec<&ObjectKey> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.is_there && !entry.is_settled())
            .map(|(key, _)| *key)
            .collect();
        for key in pending {
            let entry = self.entries.get(key);
            if let Some(readiness) = entry.and_then(|entry| entry.assess(&self.facts, now)) {
                self.set_readiness(key, readiness);
            }
        }
        self.fail_deleted();
        self.is_over()
    }

    /// Fails objects that were deleted during the wait and not recreated, because nothing in this operation creates them.
    fn fail_deleted(&mut self) {
        // The objects may exist, but cannot be watched.
        if self.lost.is_some() {
            return;
        }
        let gone = self.entries.iter().filter(|(key, entry)| {
            let since = entry.gone_since;
            // A Job that was never seen may have ended; its events show it.
            let is_unseen_job = key.kind == "Job" && entry.object.is_none();
            since.is_some_and(|since| since.elapsed() >= RECREATION_TIME)
                && !entry.is_there
                && !entry.is_settled()
                && !is_unseen_job
        });
        let gone: Vec<&ObjectKey> = gone.map(|(key, _)| *key).collect();
        for key in gone {
            let readiness = Readiness {
                status: ReadinessStatus::Failed,
                message: "was deleted while it was waited for".to_owned(),
            };
            self.set_readiness(key, readiness);
        }
    }

    /// Returns the facts that are missing for the readiness of the objects.
    pub(super) fn missing_needs(&self) -> BTreeSet<ContextNeed> {
        let there = self.entries.values().filter(|entry| entry.is_there);
        there
            .filter_map(|entry| {
                let object = entry.object.as_ref()?;
                self.facts.missing_need(object, entry.check.as_deref())
            })
            .collect()
    }

    /// Returns the namespaces of the Services that the objects call.
    pub(super) fn called_namespaces(&self) -> BTreeSet<String> {
        let objects = self
            .entries
            .values()
            .filter_map(|entry| entry.object.as_ref());
        objects.flat_map(called_namespaces).collect()
    }

    /// Returns the object that has waited longest without a search for the cause, if a search is due.
    pub(super) fn next_to_search(&self) -> Option<(ObjectKey, Value)> {
        let due = self.entries.iter().filter(|(_, entry)| {
            entry.is_reported && !entry.is_settled() && entry.pending_since.elapsed() >= PATIENCE
        });
        let due = due.filter(|(_, entry)| entry.needs_search());
        let (key, entry) = due.min_by_key(|(_, entry)| entry.searched_at)?;
        Some(((*key).clone(), entry.existing_object()))
    }

    /// Returns a Job that does not exist and was never seen: its time to live may have ended before the first event.
    pub(super) fn find_unseen_job(&self) -> Option<ObjectKey> {
        let mut unseen = self.entries.iter().filter(|(key, entry)| {
            let is_job = key.group == "batch" && key.kind == "Job";
            is_job && entry.is_reported && entry.object.is_none() && !entry.is_settled()
        });
        let (key, _) = unseen.find(|(_, entry)| entry.needs_search())?;
        Some((*key).clone())
    }

    /// Records how such a Job ended, or that this is unknown.
    pub(super) fn record_job_end(&mut self, key: &ObjectKey, end: Option<Readiness>) {
        let Some((key, entry)) = self.entries.iter_mut().find(|(known, _)| **known == key) else {
            return;
        };
        entry.searched_at = Some(Instant::now());
        if let Some(end) = end
            && entry.object.is_none()
        {
            entry.has_ended = true;
            let key = *key;
            self.set_readiness(key, end);
        }
    }

    /// Records why an object does not get ready.
    pub(super) fn record_blocker(
        &mut self,
        key: &ObjectKey,
        blocker: Option<Blocker>,
        now: Timestamp,
    ) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        entry.searched_at = Some(Instant::now());
        entry.blocker = blocker;
        self.reassess(now);
    }

    fn process_object(&mut self, object: Value, now: Timestamp) {
        let Some(key) = self.find_key(&object) else {
            return;
        };
        let mut verdict = None;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.object = Some(object);
            verdict = entry.assess(&self.facts, now);
            entry.is_there = true;
            entry.gone_since = None;
            if verdict.is_none() && !entry.is_reported {
                entry.readiness.message = "waiting: not yet looked at".to_owned();
                entry.message.clone_from(&entry.readiness.message);
            }
        }
        if let Some(readiness) = verdict {
            self.set_readiness(key, readiness);
        }
    }

    /// Processes a deletion. `last`: the last state of the object, if known.
    fn process_deletion(&mut self, key: &'a ObjectKey, last: Option<Value>) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if entry.has_ended {
            return;
        }
        let readiness = match &last {
            Some(last) => assess_missing(Some(last), true),
            None => assess_missing(entry.object.as_ref(), false),
        };
        entry.is_there = false;
        entry.gone_since.get_or_insert_with(Instant::now);
        entry.object = last.or_else(|| entry.object.take());
        // A final result stays although the object is missing in the next list.
        if !(entry.is_reported
            && entry.is_settled()
            && readiness.status == ReadinessStatus::Current)
        {
            self.set_readiness(key, readiness);
        }
    }

    fn set_readiness(&mut self, key: &'a ObjectKey, mut readiness: Readiness) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        // A failure is final: it was already reported.
        if entry.is_reported && entry.readiness.status == ReadinessStatus::Failed {
            return;
        }
        if readiness.status == ReadinessStatus::Current {
            entry.blocker = None;
            entry.searched_at = None;
        } else if entry.is_reported && entry.readiness.status == ReadinessStatus::Current {
            entry.pending_since = Instant::now();
        }
        entry.message.clone_from(&readiness.message);
        if let Some(blocker) = &entry.blocker
            && readiness.status == ReadinessStatus::InProgress
        {
            readiness.message = format!("{}; {}", readiness.message, blocker.message);
        }
        if entry.is_reported && entry.readiness == readiness {
            return;
        }
        (self.events)(Event::Waiting {
            key: key.clone(),
            readiness: readiness.clone(),
        });
        entry.readiness = readiness;
        entry.is_reported = true;
    }

    fn find_key(&self, object: &Value) -> Option<&'a ObjectKey> {
        let name = object.pointer("/metadata/name")?.as_str()?;
        self.entries.keys().find(|key| key.name == name).copied()
    }

    fn is_over(&self) -> bool {
        self.entries.values().all(BoardEntry::is_settled)
    }
}

impl BoardEntry {
    /// Returns whether the cause should be searched: it never was, or long ago.
    pub(super) fn needs_search(&self) -> bool {
        self.searched_at
            .is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN)
    }

    /// Returns the object; `Null` if it does not exist.
    pub(super) fn existing_object(&self) -> Value {
        let object = self.object.as_ref().filter(|_| self.is_there);
        object.cloned().unwrap_or(Value::Null)
    }

    /// Returns the readiness of the last known object; `None` if there is none, or a fact is missing.
    fn assess(&self, facts: &ReadinessFacts, now: Timestamp) -> Option<Readiness> {
        facts.assess(self.object.as_ref()?, self.check.as_deref(), now)
    }

    /// Returns the message of its readiness, without the cause.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    fn is_settled(&self) -> bool {
        matches!(
            self.readiness.status,
            ReadinessStatus::Current | ReadinessStatus::Failed
        )
    }
}

fn object_name(object: &Value) -> Option<String> {
    Some(object.pointer("/metadata/name")?.as_str()?.to_owned())
}
