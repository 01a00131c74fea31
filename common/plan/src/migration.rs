//! CRDs that drop a version in which objects may be stored (`status.storedVersions`), and the steps to get there (semantics 12.18).
//!
//! The API server refuses a CRD that lacks a stored version. So a *transitional* CRD is applied first: the wanted one plus the dropped
//! versions, unserved, and with another storage version. Then every object is written again unchanged, which stores it in that version;
//! then the dropped versions are removed from the status, and the wanted CRD is applied. The remaining steps follow from the live CRD
//! alone, so the next run can continue: [`ANNOTATION_MIGRATING`] on the transitional CRD records that the migration was begun and need not
//! be accepted again.
//!
//! A stored version that the live CRD no longer has ([`find_lost_versions`]) is removed from the status before anything is applied.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::closing::ClosingStep;
use super::crd_safety::count_kind;
use super::desired::digest_of;
use super::{InstallationPlan, Verb};
use common::api::names::{ANNOTATION_MIGRATING, InstallationName};
use common::manifest::key::ObjectKey;
use common::manifest::managed_fields;
use common::schema::definition_versions;
use common::text::join_equal;

/// The removal of stored versions from a CRD, and the objects that may be stored in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Migration {
    /// The definition.
    pub definition: ObjectKey,
    /// Kind of its objects.
    pub kind: String,
    /// Stored versions that the wanted CRD lacks.
    pub versions: Vec<String>,
    /// The version that objects are stored in afterwards.
    pub storage: String,
    /// Whether there are objects, or may be. They are written again only if the user accepts this.
    pub has_objects: bool,
    /// Whether an earlier run has begun the migration, which was then accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_begun: bool,
    /// The number of objects; `None` if they could not be counted.
    #[serde(skip)]
    pub count: Option<usize>,
    /// Whether objects may be written again.
    #[serde(skip)]
    pub is_accepted: bool,
    /// The wanted CRD, which is applied last.
    #[serde(skip)]
    pub wanted: Arc<Value>,
    /// The digest of the wanted CRD.
    #[serde(skip)]
    pub digest: String,
}

/// A plan is refused because objects would have to be written again and the user did not accept this. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the upgrade of {} drops stored versions; nothing was changed:\n{}", installation.name, lines(migrations))]
pub struct MigrationError {
    /// The installation.
    pub installation: InstallationName,
    /// The operation that was planned.
    pub verb: Verb,
    /// The migrations, as sentences.
    pub migrations: Vec<String>,
}

fn lines(migrations: &[String]) -> String {
    let lines: Vec<String> = migrations.iter().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

/// Returns the stored versions that the live CRD has and the wanted one lacks.
#[must_use]
pub fn find_dropped_versions(live: &Value, wanted: &Value) -> Vec<String> {
    let stored = stored_versions(live).filter(|stored| !has_version(wanted, stored));
    let dropped = stored.filter(|stored| has_version(live, stored));
    dropped.map(str::to_owned).collect()
}

/// Returns the stored versions that neither CRD has. Objects in them cannot be read, and the server refuses every change of the CRD while
/// they are in its status.
#[must_use]
pub fn find_lost_versions(live: &Value, wanted: &Value) -> Vec<String> {
    let lost = stored_versions(live)
        .filter(|stored| !has_version(wanted, stored) && !has_version(live, stored));
    lost.map(str::to_owned).collect()
}

/// Adds the lost versions to a CRD, so that a dry run accepts it.
#[must_use]
pub fn add_lost_versions(definition: &Value, lost: &[String]) -> Value {
    let mut definition = definition.clone();
    let versions = definition.pointer_mut("/spec/versions");
    if let Some(versions) = versions.and_then(Value::as_array_mut) {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let lost = lost.iter();
        versions.extend(lost.map(
            |lost| json!({"name": lost, "served": false, "storage": false, "schema": schema}),
        ));
    }
    definition
}

/// Removes the lost versions from the answer to the dry run.
pub fn remove_lost_versions(answer: &mut Value, lost: &[String]) {
    let versions = answer.pointer_mut("/spec/versions");
    if let Some(versions) = versions.and_then(Value::as_array_mut) {
        let is_lost =
            |version: &Value| name(version).is_some_and(|name| lost.iter().any(|it| it == name));
        versions.retain(|version| !is_lost(version));
    }
}

fn stored_versions(definition: &Value) -> impl Iterator<Item = &str> {
    let stored = definition.pointer("/status/storedVersions");
    let stored = stored.and_then(Value::as_array).into_iter().flatten();
    stored.filter_map(Value::as_str)
}

fn has_version(definition: &Value, version: &str) -> bool {
    definition_versions(definition).any(|one| name(one) == Some(version))
}

/// Returns the stored versions without the dropped ones.
#[must_use]
pub fn remaining_versions(live: &Value, dropped: &[String]) -> Vec<String> {
    let stored = stored_versions(live).map(str::to_owned);
    stored.filter(|stored| !dropped.contains(stored)).collect()
}

/// Returns the version in which a CRD stores objects.
#[must_use]
pub fn storage_version(definition: &Value) -> Option<&str> {
    let is_storage = |version: &&Value| version.get("storage") == Some(&Value::Bool(true));
    name(definition_versions(definition).find(is_storage)?)
}

/// Returns a served version of a CRD: the storage version, if it is served.
#[must_use]
pub fn served_version(definition: &Value) -> Option<&str> {
    let is = |version: &Value, field: &str| version.get(field) == Some(&Value::Bool(true));
    let served = definition_versions(definition).filter(|version| is(version, "served"));
    name(served.max_by_key(|version| is(version, "storage"))?)
}

impl Migration {
    /// Returns the managedFields of an object, moved to versions that the wanted CRD has. Returns `None` if nothing has to be moved.
    #[must_use]
    pub fn move_managed_fields(&self, object: &Value) -> Option<Vec<Value>> {
        let entries = object.pointer("/metadata/managedFields")?.as_array()?;
        let group = self.wanted.pointer("/spec/group")?.as_str()?;
        let stays = |api_version: &str| {
            let names = definition_versions(&self.wanted).filter_map(name);
            names
                .map(|name| format!("{group}/{name}"))
                .any(|one| one == api_version)
        };
        let to = format!("{group}/{}", self.storage);
        managed_fields::move_versions(entries, |version| !stays(version), &to)
    }

    /// Creates the migration from the live CRD to the wanted one. Returns `None` if no stored version is dropped. `count` is the number of
    /// objects, if they could be counted.
    #[must_use]
    pub fn new(live: &Value, wanted: &Arc<Value>, count: Option<usize>) -> Option<Self> {
        let versions = find_dropped_versions(live, wanted);
        let storage = storage_version(wanted)?.to_owned();
        if versions.is_empty() {
            return None;
        }
        let text = |pointer| live.pointer(pointer).and_then(Value::as_str);
        let mark = live
            .get("metadata")
            .and_then(|metadata| metadata.get("annotations")?.get(ANNOTATION_MIGRATING));
        let begun: Vec<&str> = mark
            .and_then(Value::as_str)
            .unwrap_or_default()
            .split(',')
            .collect();
        Some(Self {
            definition: ObjectKey::from_object(wanted).unwrap_or_default(),
            kind: text("/spec/names/kind").unwrap_or_default().to_owned(),
            is_begun: versions
                .iter()
                .all(|version| begun.contains(&version.as_str())),
            versions,
            storage,
            has_objects: count != Some(0),
            count,
            is_accepted: false,
            wanted: Arc::clone(wanted),
            digest: String::new(),
        })
    }

    /// Returns the wanted CRD plus the dropped versions, unserved. If it has no conversion webhook, it keeps the one through which objects
    /// are read so far.
    #[must_use]
    pub fn to_transitional(&self, live: &Value) -> Value {
        let mut object = Value::clone(&self.wanted);
        let old = definition_versions(live)
            .filter(|version| name(version).is_some_and(|name| self.drops(name)))
            .map(|version| {
                let mut version = version.clone();
                version["served"] = json!(false);
                version["storage"] = json!(false);
                version
            });
        let old: Vec<Value> = old.collect();
        if let Some(all) = object
            .pointer_mut("/spec/versions")
            .and_then(Value::as_array_mut)
        {
            all.extend(old);
        }
        if converts(live) && !converts(&object) {
            object["spec"]["conversion"] = live["spec"]["conversion"].clone();
        }
        object["metadata"]["annotations"][ANNOTATION_MIGRATING] = json!(self.versions.join(","));
        object
    }

    /// Returns the CRD after the last step, based on the server's form of the transitional one.
    #[must_use]
    pub fn to_final(&self, transitional: &Value) -> Value {
        let mut object = transitional.clone();
        let all = object.pointer_mut("/spec/versions");
        if let Some(all) = all.and_then(Value::as_array_mut) {
            all.retain(|version| name(version).is_none_or(|name| !self.drops(name)));
        }
        let annotations = object.pointer_mut("/metadata/annotations");
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.remove(ANNOTATION_MIGRATING);
        }
        if !converts(&self.wanted) {
            let wanted = self.wanted.pointer("/spec/conversion").cloned();
            object["spec"]["conversion"] = wanted.unwrap_or_else(|| json!({"strategy": "None"}));
        }
        object
    }

    fn drops(&self, version: &str) -> bool {
        self.versions.iter().any(|dropped| dropped == version)
    }

    /// Whether the live CRD is the transitional one: it stores objects in the remaining version, and does not serve the dropped ones.
    #[must_use]
    pub fn is_transitional(&self, live: &Value) -> bool {
        let unserved = |name: &str| {
            let found = definition_versions(live).find(|version| self::name(version) == Some(name));
            found.is_none_or(|version| version.get("served") != Some(&Value::Bool(true)))
        };
        storage_version(live) == Some(self.storage.as_str())
            && self.versions.iter().all(|version| unserved(version))
    }

    /// Whether the user does not have to accept the migration.
    #[must_use]
    pub fn needs_no_acceptance(&self) -> bool {
        !self.has_objects || self.is_begun
    }

    /// Whether two migrations differ only in their CRDs and objects.
    fn is_like(&self, other: &Self) -> bool {
        let steps = |one: &Self| (one.has_objects, one.versions.clone(), one.storage.clone());
        steps(self) == steps(other)
    }

    /// Describes the objects: `3 Policies`, `every Policy`.
    fn describe_objects(&self) -> String {
        match self.count {
            Some(count) => count_kind(count, &self.kind),
            None => format!("every {}", self.kind),
        }
    }
}

/// Returns a sentence about each migration. Those that remove the same versions share one, with the number of all their objects.
pub fn describe<'a>(migrations: impl IntoIterator<Item = &'a Migration>) -> Vec<String> {
    describe_each(migrations, |first, objects| {
        let (versions, storage) = (first.versions.join(", "), &first.storage);
        let what = if first.has_objects {
            format!("{objects} written again in {storage}, then {versions} is removed")
        } else {
            format!("{versions} is removed, no object is stored in it")
        };
        format!("{what}; no rollback goes back below that")
    })
}

/// Returns why the user has to accept these migrations.
fn describe_needs<'a>(migrations: impl IntoIterator<Item = &'a Migration>) -> Vec<String> {
    describe_each(migrations, |first, objects| {
        format!(
            "version {} is removed, and {objects} may be stored in it (status.storedVersions): each has to be written again in {}",
            first.versions.join(", "),
            first.storage
        )
    })
}

/// Returns a line for all migrations that differ only in their CRDs and objects. `describe` gets one of them, and their objects.
fn describe_each<'a>(
    migrations: impl IntoIterator<Item = &'a Migration>,
    describe: impl Fn(&Migration, &str) -> String,
) -> Vec<String> {
    let migrations: Vec<&Migration> = migrations.into_iter().collect();
    let lines = migrations.iter().map(|migration| {
        let like = migrations.iter().filter(|other| other.is_like(migration));
        let counts: Vec<Option<usize>> = like.map(|one| one.count).collect();
        let objects = match (
            counts.as_slice(),
            counts.iter().copied().sum::<Option<usize>>(),
        ) {
            ([_], _) => migration.describe_objects(),
            (_, Some(count)) => format!("{count} objects"),
            (_, None) => "all their objects".to_owned(),
        };
        (&migration.definition, describe(migration, &objects))
    });
    join_equal(lines)
}

impl InstallationPlan {
    /// Adds a migration to the plan: the step of its CRD applies the transitional one.
    pub fn add_migration(&mut self, mut migration: Migration, live: &Value) {
        let key = migration.definition.clone();
        let found = self
            .steps
            .binary_search_by(|step| step.target.key.cmp(&key));
        let Some(step) = found.ok().and_then(|at| self.steps.get_mut(at)) else {
            return;
        };
        let object = migration.to_transitional(live);
        migration.digest =
            std::mem::replace(&mut step.digest, digest_of(&key, &object, &self.mask));
        step.object = Arc::new(object);
        if let Some(item) = self.exact.objects.get_mut(&key) {
            item.object.digest.clone_from(&step.digest);
        }
        migration.is_accepted = migration.needs_no_acceptance();
        self.close([ClosingStep::Rewrite(migration)]);
    }

    /// Returns the plan with permission to write objects again.
    #[must_use]
    pub fn accepting_migrations(mut self) -> Self {
        for step in &mut self.closing {
            if let ClosingStep::Rewrite(migration) = step {
                migration.is_accepted = true;
            }
        }
        self
    }

    /// Refuses a plan that would write objects again without permission.
    ///
    /// # Errors
    /// [`MigrationError`] with all of these CRDs.
    pub fn check_migrations(&self) -> Result<(), MigrationError> {
        let open = self.migrations().filter(|one| !one.is_accepted);
        let migrations = describe_needs(open);
        if migrations.is_empty() {
            return Ok(());
        }
        Err(MigrationError {
            installation: self.installation.clone(),
            verb: self.verb,
            migrations,
        })
    }
}

fn name(version: &Value) -> Option<&str> {
    version.get("name")?.as_str()
}

/// Whether a webhook converts the objects of the CRD.
fn converts(definition: &Value) -> bool {
    let strategy = definition.pointer("/spec/conversion/strategy");
    strategy.and_then(Value::as_str) == Some("Webhook")
}

#[cfg(test)]
mod tests;
