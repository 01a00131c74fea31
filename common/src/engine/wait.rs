//! Waits for readiness by watches: one list and watch a kind and namespace, opened only where something is not ready yet.

mod reasons;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use futures::future::join_all;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::manifest::key::ObjectKey;
use crate::plan::Target;
use crate::readiness::{Readiness, Status, assess};

use super::address::Collection;
use super::cluster::Cluster;
use super::execute::Event;
use super::served::{self, Definition};
use super::watch::{Seen, follow};

/// Waits until every target is ready, has failed, or the deadline is over. Returns those that are not ready, sorted.
pub(super) async fn wait(
    cluster: &Cluster,
    targets: &[Target],
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Vec<(ObjectKey, Readiness)> {
    let mut definitions = Vec::new();
    let mut groups: BTreeMap<Collection, BTreeSet<&ObjectKey>> = BTreeMap::new();
    for target in targets {
        match Definition::named(&target.key) {
            Some(definition) => definitions.push(definition),
            None => {
                let group = groups.entry(Collection::of(target)).or_default();
                group.insert(&target.key);
            }
        }
    }
    let tell = teller(events);
    let watched = join_all(
        groups
            .iter()
            .map(|(collection, keys)| group(cluster, collection, keys, deadline, events)),
    );
    let served = served::wait(cluster, definitions, deadline, &tell);
    let (watched, mut pending) = futures::join!(watched, served);
    pending.extend(watched.into_iter().flatten());
    pending.sort_by(|(one, _), (other, _)| one.cmp(other));
    pending
}

/// Sends [`Event::Waiting`] only where something changed.
pub(super) fn teller(
    events: &(dyn Fn(Event) + Send + Sync),
) -> impl Fn(&ObjectKey, &Readiness) + Send + Sync {
    let told: Mutex<BTreeMap<ObjectKey, Readiness>> = Mutex::default();
    move |key, readiness| {
        let mut told = told
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if told.get(key) != Some(readiness) {
            told.insert(key.clone(), readiness.clone());
            events(Event::Waiting {
                key: key.clone(),
                readiness: readiness.clone(),
            });
        }
    }
}

/// Waits for the objects of one kind and namespace.
async fn group(
    cluster: &Cluster,
    collection: &Collection,
    keys: &BTreeSet<&ObjectKey>,
    deadline: Instant,
    events: &(dyn Fn(Event) + Send + Sync),
) -> Vec<(ObjectKey, Readiness)> {
    let mut board = Board::new(keys, events);
    let only = match keys.first() {
        Some(key) if keys.len() == 1 => Some(key.name.as_str()),
        _ => None,
    };
    let watching = follow(cluster, collection, only, |seen| board.see(seen));
    let unseen = match timeout_at(deadline, watching).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Readiness {
            status: Status::Failed,
            message: format!("its readiness cannot be seen: {error}"),
        }),
        Err(_) => None,
    };
    let mut pending = Vec::new();
    for (key, entry) in board.entries {
        let mut readiness = entry.readiness;
        if readiness.status == Status::Current {
            continue;
        }
        if let (Some(unseen), false) = (&unseen, readiness.status == Status::Failed) {
            readiness = unseen.clone();
        } else if let Some(reason) =
            reasons::reason(cluster, collection, &key.name, &entry.object).await
        {
            readiness.message = format!("{}; {reason}", readiness.message);
        }
        pending.push((key.clone(), readiness));
    }
    pending
}

/// The state of the objects of one group.
struct Board<'a> {
    entries: BTreeMap<&'a ObjectKey, Entry>,
    events: &'a (dyn Fn(Event) + Send + Sync),
}

struct Entry {
    readiness: Readiness,
    /// The object as it was seen last, where it says why it is not ready.
    object: Value,
    told: bool,
}

impl<'a> Board<'a> {
    fn new(keys: &BTreeSet<&'a ObjectKey>, events: &'a (dyn Fn(Event) + Send + Sync)) -> Self {
        let entry = || Entry {
            readiness: missing(),
            object: Value::Null,
            told: false,
        };
        Self {
            entries: keys.iter().map(|key| (*key, entry())).collect(),
            events,
        }
    }

    /// Takes in what was seen; true = nothing is pending any more.
    fn see(&mut self, seen: Seen) -> bool {
        match seen {
            Seen::Listed(objects) => {
                let there: BTreeSet<String> = objects.iter().filter_map(name).collect();
                let gone: Vec<String> = self
                    .entries
                    .keys()
                    .filter(|key| !there.contains(&key.name))
                    .map(|key| key.name.clone())
                    .collect();
                for name in gone {
                    self.judge(&name, missing(), Value::Null);
                }
                for object in objects {
                    self.look_at(object);
                }
            }
            Seen::Changed(object) => self.look_at(object),
            Seen::Deleted(object) => {
                if let Some(name) = name(&object) {
                    self.judge(&name, missing(), Value::Null);
                }
            }
        }
        self.entries
            .values()
            .all(|entry| matches!(entry.readiness.status, Status::Current | Status::Failed))
    }

    fn look_at(&mut self, object: Value) {
        if let Some(name) = name(&object) {
            let readiness = assess(&object);
            self.judge(&name, readiness, object);
        }
    }

    fn judge(&mut self, name: &str, readiness: Readiness, object: Value) {
        let entries = self.entries.iter_mut();
        let Some((key, entry)) = entries.into_iter().find(|(key, _)| key.name == name) else {
            return;
        };
        if entry.told && entry.readiness == readiness {
            entry.object = object;
            return;
        }
        // What failed stays failed: its end was told.
        if entry.told && entry.readiness.status == Status::Failed {
            return;
        }
        (self.events)(Event::Waiting {
            key: (*key).clone(),
            readiness: readiness.clone(),
        });
        *entry = Entry {
            readiness,
            object,
            told: true,
        };
    }
}

fn missing() -> Readiness {
    Readiness {
        status: Status::InProgress,
        message: "it is not there".to_owned(),
    }
}

fn name(object: &Value) -> Option<String> {
    Some(object.pointer("/metadata/name")?.as_str()?.to_owned())
}

#[cfg(test)]
#[path = "wait/tests.rs"]
mod tests;
