//! The state of the objects of one kind and namespace that an operation waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use addons_plan::readiness::blocker::Blocker;
use addons_plan::readiness::{Need, Readiness, Status, assess_gone, called_namespaces};
use common::manifest::key::ObjectKey;

use super::super::event::Event;
use super::super::facts::Facts;
use super::super::watch::Seen;

/// How long an object is pending before the cause is searched.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a deleted object may take to be recreated by its controller or by us.
const COMES_AGAIN: Duration = Duration::from_secs(2);
/// How long a found cause is valid.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// A [`Board`] that several futures of one task update.
pub(super) struct Shared<'a> {
    board: Mutex<Board<'a>>,
    /// Notified when a fact has to be read.
    pub(super) lacking: Notify,
    /// Notified when endpoints have to be read.
    pub(super) calling: Notify,
}

impl<'a> Shared<'a> {
    pub(super) fn new(board: Board<'a>) -> Self {
        Self {
            board: Mutex::new(board),
            lacking: Notify::new(),
            calling: Notify::new(),
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
    pub(super) fn see(&self, seen: Seen, now: Timestamp) -> bool {
        let mut board = self.lock();
        let is_over = board.see(seen, now);
        let lacks = board.lacks();
        if lacks.contains(&Need::Endpoints) {
            self.calling.notify_one();
        }
        if !lacks.is_empty() {
            self.lacking.notify_one();
        }
        is_over
    }
}

/// The state of the objects.
pub(super) struct Board<'a> {
    pub(super) entries: BTreeMap<&'a ObjectKey, Entry>,
    pub(super) facts: Facts,
    /// Why the objects cannot be watched at the moment.
    pub(super) lost: Option<String>,
    events: &'a (dyn Fn(Event) + Send + Sync),
}

pub(super) struct Entry {
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
    told: bool,
    /// When it was first found not to be ready.
    pending_since: Instant,
    looked: Option<Instant>,
    blocker: Option<Blocker>,
}

impl<'a> Board<'a> {
    pub(super) fn new(
        keys: &BTreeSet<&'a ObjectKey>,
        events: &'a (dyn Fn(Event) + Send + Sync),
    ) -> Self {
        let begun = Instant::now();
        let entry = || Entry {
            readiness: assess_gone(None, false),
            message: assess_gone(None, false).message,
            object: None,
            is_there: false,
            gone_since: None,
            has_ended: false,
            told: false,
            pending_since: begun,
            looked: None,
            blocker: None,
        };
        Self {
            entries: keys.iter().map(|key| (*key, entry())).collect(),
            facts: Facts::default(),
            lost: None,
            events,
        }
    }

    /// Processes a watch event. Returns whether no object is pending.
    pub(super) fn see(&mut self, seen: Seen, now: Timestamp) -> bool {
        self.lost = None;
        self.facts.begun.get_or_insert(now);
        match seen {
            Seen::Listed(objects) => {
                let there: BTreeSet<String> = objects.iter().filter_map(name).collect();
                let gone: Vec<&ObjectKey> = self
                    .entries
                    .keys()
                    .filter(|key| !there.contains(&key.name))
                    .copied()
                    .collect();
                for key in gone {
                    self.gone(key, None);
                }
                for object in objects {
                    self.look_at(object, now);
                }
            }
            Seen::Changed(object) => self.look_at(object, now),
            Seen::Deleted(object) => {
                if let Some(key) = self.key(&object) {
                    self.gone(key, Some(object));
                }
            }
            Seen::Lost(why) => self.lost = Some(why),
        }
        self.is_over()
    }

    /// Assesses objects again after time has passed or facts were read. Returns whether no object is pending.
    pub(super) fn judge_again(&mut self, now: Timestamp) -> bool {
        let pending: Vec<&ObjectKey> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.is_there && !entry.is_settled())
            .map(|(key, _)| *key)
            .collect();
        for key in pending {
            let object = self
                .entries
                .get(key)
                .and_then(|entry| entry.object.as_ref());
            if let Some(readiness) = object.and_then(|object| self.facts.judge(object, now)) {
                self.judge(key, readiness);
            }
        }
        self.give_up_deleted();
        self.is_over()
    }

    /// Fails objects that were deleted during the wait and not recreated, because nothing in this operation creates them.
    fn give_up_deleted(&mut self) {
        // The objects may exist, but cannot be watched.
        if self.lost.is_some() {
            return;
        }
        let gone = self.entries.iter().filter(|(key, entry)| {
            let since = entry.gone_since;
            // A Job that was never seen may have ended; its events show it.
            let is_unseen_job = key.kind == "Job" && entry.object.is_none();
            since.is_some_and(|since| since.elapsed() >= COMES_AGAIN)
                && !entry.is_there
                && !entry.is_settled()
                && !is_unseen_job
        });
        let gone: Vec<&ObjectKey> = gone.map(|(key, _)| *key).collect();
        for key in gone {
            let readiness = Readiness {
                status: Status::Failed,
                message: "was deleted while it was waited for".to_owned(),
            };
            self.judge(key, readiness);
        }
    }

    /// Returns the facts that are missing for the readiness of the objects.
    pub(super) fn lacks(&self) -> BTreeSet<Need> {
        let there = self.entries.values().filter(|entry| entry.is_there);
        there
            .filter_map(|entry| self.facts.lacks(entry.object.as_ref()?))
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
    pub(super) fn due(&self) -> Option<(ObjectKey, Value)> {
        let due = self.entries.iter().filter(|(_, entry)| {
            entry.told && !entry.is_settled() && entry.pending_since.elapsed() >= PATIENCE
        });
        let due = due.filter(|(_, entry)| entry.needs_a_look());
        let (key, entry) = due.min_by_key(|(_, entry)| entry.looked)?;
        Some(((*key).clone(), entry.shown()))
    }

    /// Returns a Job that does not exist and was never seen: its time to live may have ended before the first event.
    pub(super) fn unseen_job(&self) -> Option<ObjectKey> {
        let mut unseen = self.entries.iter().filter(|(key, entry)| {
            let is_job = key.group == "batch" && key.kind == "Job";
            is_job && entry.told && entry.object.is_none() && !entry.is_settled()
        });
        let (key, _) = unseen.find(|(_, entry)| entry.needs_a_look())?;
        Some((*key).clone())
    }

    /// Records how such a Job ended, or that this is unknown.
    pub(super) fn end(&mut self, key: &ObjectKey, end: Option<Readiness>) {
        let Some((key, entry)) = self.entries.iter_mut().find(|(known, _)| **known == key) else {
            return;
        };
        entry.looked = Some(Instant::now());
        if let Some(end) = end
            && entry.object.is_none()
        {
            entry.has_ended = true;
            let key = *key;
            self.judge(key, end);
        }
    }

    /// Records why an object does not get ready.
    pub(super) fn explain(&mut self, key: &ObjectKey, blocker: Option<Blocker>, now: Timestamp) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        entry.looked = Some(Instant::now());
        entry.blocker = blocker;
        self.judge_again(now);
    }

    fn look_at(&mut self, object: Value, now: Timestamp) {
        let Some(key) = self.key(&object) else { return };
        let verdict = self.facts.judge(&object, now);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.object = Some(object);
            entry.is_there = true;
            entry.gone_since = None;
            if verdict.is_none() && !entry.told {
                entry.readiness.message = "waiting: not yet looked at".to_owned();
                entry.message.clone_from(&entry.readiness.message);
            }
        }
        if let Some(readiness) = verdict {
            self.judge(key, readiness);
        }
    }

    /// Processes a deletion. `last`: the last state of the object, if known.
    fn gone(&mut self, key: &'a ObjectKey, last: Option<Value>) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if entry.has_ended {
            return;
        }
        let readiness = match &last {
            Some(last) => assess_gone(Some(last), true),
            None => assess_gone(entry.object.as_ref(), false),
        };
        entry.is_there = false;
        entry.gone_since.get_or_insert_with(Instant::now);
        entry.object = last.or_else(|| entry.object.take());
        // A final result stays although the object is missing in the next list.
        if !(entry.told && entry.is_settled() && readiness.status == Status::Current) {
            self.judge(key, readiness);
        }
    }

    fn judge(&mut self, key: &'a ObjectKey, mut readiness: Readiness) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        // A failure is final: it was already reported.
        if entry.told && entry.readiness.status == Status::Failed {
            return;
        }
        if readiness.status == Status::Current {
            entry.blocker = None;
            entry.looked = None;
        } else if entry.told && entry.readiness.status == Status::Current {
            entry.pending_since = Instant::now();
        }
        entry.message.clone_from(&readiness.message);
        if let Some(blocker) = &entry.blocker
            && readiness.status == Status::InProgress
        {
            readiness.message = format!("{}; {}", readiness.message, blocker.message);
        }
        if entry.told && entry.readiness == readiness {
            return;
        }
        (self.events)(Event::Waiting {
            key: key.clone(),
            readiness: readiness.clone(),
        });
        entry.readiness = readiness;
        entry.told = true;
    }

    fn key(&self, object: &Value) -> Option<&'a ObjectKey> {
        let name = object.pointer("/metadata/name")?.as_str()?;
        self.entries.keys().find(|key| key.name == name).copied()
    }

    fn is_over(&self) -> bool {
        self.entries.values().all(Entry::is_settled)
    }
}

impl Entry {
    /// Returns whether the cause should be searched: it never was, or long ago.
    pub(super) fn needs_a_look(&self) -> bool {
        self.looked
            .is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN)
    }

    /// Returns the object; `Null` if it does not exist.
    pub(super) fn shown(&self) -> Value {
        let object = self.object.as_ref().filter(|_| self.is_there);
        object.cloned().unwrap_or(Value::Null)
    }

    /// Returns the message of its readiness, without the cause.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    fn is_settled(&self) -> bool {
        matches!(self.readiness.status, Status::Current | Status::Failed)
    }
}

fn name(object: &Value) -> Option<String> {
    Some(object.pointer("/metadata/name")?.as_str()?.to_owned())
}
