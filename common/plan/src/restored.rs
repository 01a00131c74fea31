//! Whether a record is older than the cluster: it was restored from a backup, and the objects have changed since (semantics 13).

pub mod rebuild;

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::Value;

use super::claims::Claims;
use super::prune::KeptKind;
use super::snapshot::{LiveObject, Snapshot};
use common::api::installation::AddonInstallation;
use common::api::names::{CLIENT, InstallationName, field_manager, owner_hash};
use common::manifest::key::ObjectKey;

/// How much later than its record an object may have been written: clocks of several API servers differ, and a request of a client
/// that was killed may still be under way.
pub const MARGIN: SignedDuration = SignedDuration::from_secs(60);

/// Until when a record knows what was written to the objects of its installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// There is no record yet, or it does not say: an operation was cut off, and the next one completes it.
    Open,
    /// No operation is recorded: the record is new, or was restored without its status.
    Blank,
    /// The last operation ended then.
    Until(Timestamp),
}

/// A record that is older than the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordOlder {
    /// The installation.
    pub installation: InstallationName,
    /// When its last operation ended; `None` where none is recorded.
    pub recorded: Option<Timestamp>,
    /// The object that was written last.
    pub object: ObjectKey,
    /// When.
    pub written: Timestamp,
    /// How many objects the record does not know as they are.
    pub objects: usize,
}

impl Memory {
    /// Of a record; `None` is one that does not exist yet.
    #[must_use]
    pub fn of(record: Option<&AddonInstallation>) -> Self {
        let Some(record) = record else {
            return Self::Open;
        };
        let Some(status) = &record.status else {
            return Self::Blank;
        };
        if status.operation.is_some() {
            return Self::Open;
        }
        let ended = status.history.iter().map(|revision| &revision.installed);
        let ended = ended.chain(&status.installed);
        let ended = ended.filter_map(|installed| Some(installed.at.as_ref()?.0));
        match ended.max() {
            Some(ended) => Self::Until(ended),
            None if status.inventory.is_empty() && status.installed.is_none() => Self::Blank,
            None => Self::Open,
        }
    }

    /// Of a record whose objects are applied: an installation that was cut off before its lock is continued (semantics 13).
    #[must_use]
    pub fn to_install(record: Option<&AddonInstallation>) -> Self {
        match Self::of(record) {
            Self::Blank if record.is_some_and(is_only_created) => Self::Open,
            memory => memory,
        }
    }
}

/// Whether our client created the record, and nothing else happened to its spec: the installation that it was created for applies to
/// objects that were there before it. One from a backup was created by another client, or keeps the time of its former creation. Core
/// records are made by a loop that nobody has asked to take over what is there.
fn is_only_created(record: &AddonInstallation) -> bool {
    let metadata = &record.metadata;
    let Some(created) = metadata.creation_timestamp.as_ref() else {
        return false;
    };
    let entries = metadata.managed_fields.iter().flatten();
    let mut writers = entries.filter(|entry| sets_spec(entry));
    let (Some(writer), None) = (writers.next(), writers.next()) else {
        return false;
    };
    // The server takes that of the field manager first, in whole seconds; admission, which has 30 s at most, comes in between.
    let since = writer.time.as_ref();
    let since = since.map(|time| created.0.duration_since(time.0));
    let is_of_creation = since.is_some_and(|since| (0..=30).contains(&since.as_secs()));
    writer.manager.as_deref() == Some(CLIENT) && is_of_creation && !record.spec.core_addon
}

/// Of the entries of a record in a list, only those are left that do, without most fields.
fn sets_spec(entry: &ManagedFieldsEntry) -> bool {
    let fields = entry.fields_v1.as_ref();
    entry.subresource.as_deref().is_none_or(str::is_empty)
        && fields.is_none_or(|fields| fields.0.get("f:spec").is_some())
}

/// What the live objects of a snapshot say of the record; `None` where it is as new as they are.
#[must_use]
pub fn older(
    installation: &InstallationName,
    memory: Memory,
    snapshot: &Snapshot,
    claims: &Claims,
) -> Option<RecordOlder> {
    let owner = owner_hash(&installation.namespace, &installation.name);
    let objects = snapshot.live.iter().chain(&snapshot.unasked);
    let ours = objects.filter(|(key, live)| {
        let is_claimed = claims.objects.contains_key(*key) || claims.retained.contains_key(*key);
        live.owner.as_deref() == Some(owner.as_str()) && live.controlled_by.is_none() && !is_claimed
    });
    let written = ours.filter_map(|(key, live)| {
        let at = live.written?;
        // What an earlier installation of this name left behind on purpose says nothing of a new record.
        (memory != Memory::Blank || !stays(key, live)).then_some((key, at))
    });
    judge(installation, memory, written)
}

/// The same for objects of which it is known that they are of the installation: each with the time of our last write to it.
#[must_use]
pub fn judge<'a>(
    installation: &InstallationName,
    memory: Memory,
    written: impl Iterator<Item = (&'a ObjectKey, Timestamp)>,
) -> Option<RecordOlder> {
    let (recorded, bound) = match memory {
        Memory::Open => return None,
        Memory::Blank => (None, Timestamp::MIN),
        Memory::Until(ended) => (Some(ended), ended.checked_add(MARGIN).ok()?),
    };
    let newer: Vec<_> = written.filter(|(_, at)| *at > bound).collect();
    let (object, written) = newer.iter().max_by_key(|(_, at)| *at)?;
    Some(RecordOlder {
        installation: installation.clone(),
        recorded,
        object: (*object).clone(),
        written: *written,
        objects: newer.len(),
    })
}

/// Whether an uninstallation leaves the object.
fn stays(key: &ObjectKey, live: &LiveObject) -> bool {
    KeptKind::of(key).is_some() || live.keep.is_some() || live.create_only
}

/// When the field manager of an installation last wrote an object, as its managedFields say.
#[must_use]
pub fn written(object: &Value, installation: &InstallationName) -> Option<Timestamp> {
    let manager = field_manager(&installation.namespace, &installation.name);
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let ours = entries.iter().filter(|entry| {
        entry["manager"].as_str() == Some(&manager) && entry.get("subresource").is_none()
    });
    ours.filter_map(|entry| entry["time"].as_str()?.parse().ok())
        .max()
}

impl fmt::Display for RecordOlder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            installation,
            recorded,
            object,
            written,
            objects,
        } = self;
        match recorded {
            Some(recorded) => write!(
                f,
                "the record of {installation} is older than the cluster: its last operation ended at {recorded}, and {object} \
                 was written at {written}"
            )?,
            None => write!(
                f,
                "the record of {installation} is older than the cluster: no operation is recorded, and {object} was written for \
                 it at {written}"
            )?,
        }
        match objects {
            0 | 1 => Ok(()),
            2 => f.write_str(", and 1 object more"),
            objects => write!(f, ", and {} objects more", objects - 1),
        }
    }
}

#[cfg(test)]
#[path = "restored/tests.rs"]
mod tests;
