//! Detects records that are older than the cluster: restored from a backup although their objects have changed since (semantics 13.10).

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

/// How much later than the end of the last operation an object may have been written: clocks of API servers differ, and a request of a
/// killed client may still be in progress.
pub const MARGIN: SignedDuration = SignedDuration::from_secs(60);

/// The time until which a record covers the writes to its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordCoverage {
    /// Unknown: there is no record yet, or its operation was interrupted and the next one completes it.
    Open,
    /// No operation is recorded: the record is new, or was restored without its status.
    Blank,
    /// Until the last operation ended.
    Until(Timestamp),
}

/// A record that is older than the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutdatedRecord {
    /// The installation.
    pub installation: InstallationName,
    /// When its last operation ended; `None` if none is recorded.
    pub recorded: Option<Timestamp>,
    /// The object that was written last.
    pub object: ObjectKey,
    /// When it was written.
    pub written: Timestamp,
    /// The number of objects that were written after the record.
    pub objects: usize,
}

impl RecordCoverage {
    /// Reads the coverage of a record; `None` if the record does not exist yet.
    #[must_use]
    pub fn from_record(record: Option<&AddonInstallation>) -> Self {
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

    /// Like [`RecordCoverage::from_record`], for an operation that applies objects: a record whose client was killed before its first operation is continued
    /// (semantics 13.10).
    #[must_use]
    pub fn for_install(record: Option<&AddonInstallation>) -> Self {
        match Self::from_record(record) {
            Self::Blank if record.is_some_and(is_only_created) => Self::Open,
            memory => memory,
        }
    }
}

/// Whether kubectl addons created the record and nothing has changed its spec since: the client was killed before its first operation, and
/// the objects existed before. A record from a backup was created by another client, or keeps its original creation time. Core records are
/// excluded, because the loop creates them, and no one asked it to take over existing objects.
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
    // The server sets the time of the field manager first, in whole seconds, then the creation time; admission, which takes at most 30 s,
    // comes in between.
    let since = writer.time.as_ref();
    let since = since.map(|time| created.0.duration_since(time.0));
    let is_of_creation = since.is_some_and(|since| (0..=30).contains(&since.as_secs()));
    writer.manager.as_deref() == Some(CLIENT) && is_of_creation && !record.spec.core_addon
}

/// Whether an entry of managedFields sets the spec. Records from lists only keep such entries, without most of their fields.
fn sets_spec(entry: &ManagedFieldsEntry) -> bool {
    let fields = entry.fields_v1.as_ref();
    entry.subresource.as_deref().is_none_or(str::is_empty)
        && fields.is_none_or(|fields| fields.0.get("f:spec").is_some())
}

/// Checks a record against the live objects of a snapshot. Returns `None` if it is not older than they are.
#[must_use]
pub fn find_outdated(
    installation: &InstallationName,
    memory: RecordCoverage,
    snapshot: &Snapshot,
    claims: &Claims,
) -> Option<OutdatedRecord> {
    let owner = owner_hash(&installation.namespace, &installation.name);
    let objects = snapshot.live.iter().chain(&snapshot.unrequested);
    let ours = objects.filter(|(key, live)| {
        let is_claimed = claims.objects.contains_key(*key) || claims.retained.contains_key(*key);
        live.owner.as_deref() == Some(owner.as_str()) && live.controlled_by.is_none() && !is_claimed
    });
    let written = ours.filter_map(|(key, live)| {
        let at = live.last_written?;
        // Objects that an earlier installation with this name left on purpose do not make a new record outdated.
        (memory != RecordCoverage::Blank || !survives_uninstall(key, live)).then_some((key, at))
    });
    compare_writes(installation, memory, written)
}

/// Like [`find_outdated`], for objects that are known to belong to the installation, each with the time when its field manager last wrote it.
#[must_use]
pub fn compare_writes<'a>(
    installation: &InstallationName,
    memory: RecordCoverage,
    written: impl Iterator<Item = (&'a ObjectKey, Timestamp)>,
) -> Option<OutdatedRecord> {
    let (recorded, bound) = match memory {
        RecordCoverage::Open => return None,
        RecordCoverage::Blank => (None, Timestamp::MIN),
        RecordCoverage::Until(ended) => (Some(ended), ended.checked_add(MARGIN).ok()?),
    };
    let newer: Vec<_> = written.filter(|(_, at)| *at > bound).collect();
    let (object, written) = newer.iter().max_by_key(|(_, at)| *at)?;
    Some(OutdatedRecord {
        installation: installation.clone(),
        recorded,
        object: (*object).clone(),
        written: *written,
        objects: newer.len(),
    })
}

/// Whether an uninstallation keeps the object.
fn survives_uninstall(key: &ObjectKey, live: &LiveObject) -> bool {
    KeptKind::from_key(key).is_some() || live.keep.is_some() || live.create_only
}

/// Returns when the field manager of an installation last wrote an object, according to its managedFields.
#[must_use]
pub fn last_written(object: &Value, installation: &InstallationName) -> Option<Timestamp> {
    let manager = field_manager(&installation.namespace, &installation.name);
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let ours = entries.iter().filter(|entry| {
        entry["manager"].as_str() == Some(&manager) && entry.get("subresource").is_none()
    });
    ours.filter_map(|entry| entry["time"].as_str()?.parse().ok())
        .max()
}

impl fmt::Display for OutdatedRecord {
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
