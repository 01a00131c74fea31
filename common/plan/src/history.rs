//! The revisions of an installation: the input of each operation and the entry that it used, so that a rollback can go back to it although
//! the catalogue has changed (semantics 12.3).
//!
//! A revision names Secrets but contains nothing that is read from them: `spec.valuesFrom` is a reference, and `spec.values` is in the
//! record anyway.

mod listed;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use addons_versions::tolerant;

use crate::{Verb, gitops};
use common::api::catalogue::{AddonVersion, GitRef, with_digest};
use common::api::installation::{
    AddonInstallation, AddonInstallationSpec, AddonRef, HistoryEntry, Installed,
};
use common::api::names::ANNOTATION_DEFAULTED;
use common::catalogue::CatalogueEntry;
use common::manifest::digest;

/// The maximum number of revisions to keep per installation.
pub const MAX_REVISIONS: usize = 10;
/// The maximum size of a revision, in bytes of JSON.
pub const LARGEST: usize = 256 * 1024;

/// A revision as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredRevision {
    /// Its number, counting from 1. It is stored beside the data.
    #[serde(skip)]
    pub number: i64,
    /// The operation: its verb, what it installed, when and by whom, and how it ended.
    pub operation: HistoryEntry,
    /// The revision that a rollback went back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_to: Option<i64>,
    /// The spec of the installation.
    pub spec: AddonInstallationSpec,
    /// The values that were filled in by default, from the annotation of the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaulted: Option<String>,
    /// The catalogue entry. Absent if the revision would be too large with it, or if the entry contains its manifest inline: that may be a
    /// Secret, and more people may read revisions than Secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<CatalogueEntry>,
    /// Digest of the entry's version, to find it again in a catalogue.
    pub entry_digest: String,
}

/// A revision is too large even without its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {bytes} bytes, and {LARGEST} at most are kept of a revision")]
pub struct RevisionTooLarge {
    /// Its size.
    pub bytes: usize,
}

/// The revision that a rollback is to go back to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RevisionRequest {
    /// The last one before the newest that succeeded with another state.
    #[default]
    Previous,
    /// The one with this number.
    Number(i64),
    /// The newest one that succeeded with this version, which is read tolerantly.
    Version(String),
}

/// An error: there is no revision to roll back to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRevision {
    /// No revision is stored.
    #[error("no revision of it is kept")]
    Nothing,
    /// The requested revision is not stored.
    #[error("revision {asked} is not kept; revisions that are: {}", listed(kept))]
    Unknown {
        /// The requested number.
        asked: i64,
        /// The stored numbers, newest first.
        kept: Vec<i64>,
    },
    /// No stored revision succeeded with the requested version.
    #[error(
        "no revision that succeeded with version {asked} is kept; versions that are: {}",
        listed_versions(kept)
    )]
    UnknownVersion {
        /// The requested version.
        asked: String,
        /// The versions of the revisions that succeeded, each with the number of its newest revision, newest first.
        kept: Vec<(String, i64)>,
    },
    /// No earlier revision succeeded with another state.
    #[error("no earlier revision succeeded with another version or other values")]
    NoEarlier,
}

fn listed(kept: &[i64]) -> String {
    let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
    kept.join(", ")
}

fn listed_versions(kept: &[(String, i64)]) -> String {
    if kept.is_empty() {
        return "none".to_owned();
    }
    let kept = kept.iter();
    let kept: Vec<String> = kept
        .map(|(version, number)| format!("{version} (revision {number})"))
        .collect();
    kept.join(", ")
}

/// The differences between two revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevisionChanges {
    /// Whether the version or id differs.
    pub version: bool,
    /// Whether the version is the same but its manifest differs.
    pub manifest: bool,
    /// Paths of the spec that differ, as users write them, without those that only name the version.
    pub fields: Vec<String>,
}

impl StoredRevision {
    /// Creates the revision of an operation that ended. `wanted` is the record that the operation was to result in.
    #[must_use]
    pub fn new(
        operation: HistoryEntry,
        wanted: &AddonInstallation,
        entry: &CatalogueEntry,
        rollback_to: Option<i64>,
    ) -> Self {
        let annotations = wanted.metadata.annotations.as_ref();
        Self {
            number: 0,
            operation,
            rollback_to,
            spec: wanted.spec.clone(),
            defaulted: annotations.and_then(|all| all.get(ANNOTATION_DEFAULTED).cloned()),
            entry: Some(entry.clone()).filter(|entry| entry.version.source.inline.is_none()),
            entry_digest: entry_digest(&entry.version),
        }
    }

    /// Returns the data to store, without the entry if it would be too large.
    ///
    /// # Errors
    /// [`RevisionTooLarge`] if it is too large even without the entry.
    pub fn to_data(&self) -> Result<Value, RevisionTooLarge> {
        let whole = json!(self);
        if json_size(&whole) <= LARGEST {
            return Ok(whole);
        }
        let without = json!(Self {
            entry: None,
            ..self.clone()
        });
        match json_size(&without) {
            bytes if bytes > LARGEST => Err(RevisionTooLarge { bytes }),
            _ => Ok(without),
        }
    }

    /// Returns the stored entry, pinned to the content that was installed from it: other content of a branch, tag or URL is refused by its
    /// hash. Returns `None` if no entry is stored, or if it contains its manifest inline: this program stores no such entry, so another
    /// client wrote it.
    #[must_use]
    pub fn entry_as_installed(&self) -> Option<CatalogueEntry> {
        let kept = self.entry.as_ref();
        let kept = kept.filter(|entry| entry.version.source.inline.is_none());
        let mut entry = kept?.clone();
        let installed = &self.operation.installed;
        let source = &mut entry.version.source;
        if let (Some(git), Some(commit)) = (&mut source.git, &installed.resolved) {
            git.r#ref = Some(GitRef {
                commit: Some(commit.clone()),
                ..GitRef::default()
            });
        }
        if let (Some(docker), Some(found)) = (&mut source.docker, &installed.resolved) {
            docker.image = with_digest(&docker.image, found);
        }
        if digest::check_hash(&installed.manifest_hash).is_ok() {
            entry.version.manifest_hash = Some(installed.manifest_hash.clone());
        }
        Some(entry)
    }

    /// Returns the spec that restores this revision, pinned to the version of `entry`, because the loop would otherwise upgrade it at once
    /// (semantics 12.3). Fields that never change, and `suspend`, stay as they are in `now`.
    #[must_use]
    pub fn spec_to_restore(
        &self,
        now: &AddonInstallationSpec,
        entry: &AddonVersion,
    ) -> AddonInstallationSpec {
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        let before = &self.spec.addon_ref;
        let leaves_id_open = before.version.is_some() && before.id.is_none();
        AddonInstallationSpec {
            addon_ref: AddonRef {
                version: some(&entry.version),
                id: some(&entry.id).filter(|_| !leaves_id_open),
                ..before.clone()
            },
            core_addon: now.core_addon,
            target_namespace: now.target_namespace.clone(),
            suspend: now.suspend,
            ..self.spec.clone()
        }
    }

    /// Returns what this revision changed compared to the one before it.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> RevisionChanges {
        let (old, new) = (&before.operation.installed, &self.operation.installed);
        let version = (&old.version, &old.id) != (&new.version, &new.id);
        let edits =
            gitops::diff_specs_by_value(&without_pin(&before.spec), &without_pin(&self.spec));
        let mut fields: Vec<String> = edits.iter().map(|path| path.join(".")).collect();
        // A registry of the catalogue is not part of the spec.
        let registry = "registry".to_owned();
        if old.registry != new.registry && !fields.contains(&registry) {
            fields.push(registry);
        }
        RevisionChanges {
            version,
            manifest: !version && old.manifest_hash != new.manifest_hash,
            fields,
        }
    }

    /// Whether both result in the same state, ignoring whether their specs name the version.
    fn is_same_state(&self, other: &Self) -> bool {
        let state = |one: &Self| Installed {
            // These do not affect the installed content: the rules that chose it, its signature, and whether it is yet to be applied.
            rules: None,
            signature: None,
            adopted: false,
            // The registry of the catalogue always applies as it is today.
            registry: None,
            ..one.operation.installed.clone()
        };
        state(self).is_same_target(&state(other))
            && without_pin(&self.spec) == without_pin(&other.spec)
    }
}

/// Returns the digest of an entry's version.
#[must_use]
pub fn entry_digest(version: &AddonVersion) -> String {
    digest::sha256_canonical(&json!(version))
}

/// Finds the revision to roll back to. `revisions` are newest first. With `is_interrupted`, a change was begun that has no revision yet; the
/// last revision that succeeded is then what was installed before it.
///
/// # Errors
/// [`NoRevision`].
pub fn find_rollback_target<'a>(
    revisions: &'a [StoredRevision],
    asked: &RevisionRequest,
    is_interrupted: bool,
) -> Result<&'a StoredRevision, NoRevision> {
    let (newest, earlier) = revisions.split_first().ok_or(NoRevision::Nothing)?;
    let mut done = revisions.iter().filter(|one| one.operation.is_done());
    match asked {
        RevisionRequest::Number(asked) => find_by_number(revisions, *asked),
        RevisionRequest::Version(asked) => done
            .find(|one| tolerant::is_same(&one.operation.installed.version, asked))
            .ok_or_else(|| NoRevision::UnknownVersion {
                asked: asked.clone(),
                kept: newest_of_versions(revisions),
            }),
        RevisionRequest::Previous if is_interrupted => done.next().ok_or(NoRevision::NoEarlier),
        RevisionRequest::Previous => earlier
            .iter()
            .find(|one| one.operation.is_done() && !one.is_same_state(newest))
            .ok_or(NoRevision::NoEarlier),
    }
}

/// Finds a revision by its number. `revisions` are newest first.
///
/// # Errors
/// [`NoRevision`].
pub fn find_by_number(
    revisions: &[StoredRevision],
    asked: i64,
) -> Result<&StoredRevision, NoRevision> {
    if revisions.is_empty() {
        return Err(NoRevision::Nothing);
    }
    let mut all = revisions.iter();
    all.find(|one| one.number == asked)
        .ok_or_else(|| NoRevision::Unknown {
            asked,
            kept: revisions.iter().map(|one| one.number).collect(),
        })
}

/// Returns each version that a revision succeeded with, and the number of its newest revision.
fn newest_of_versions(revisions: &[StoredRevision]) -> Vec<(String, i64)> {
    let mut versions: Vec<(String, i64)> = Vec::new();
    for revision in revisions.iter().filter(|one| one.operation.is_done()) {
        let version = &revision.operation.installed.version;
        let is_known = versions.iter().any(|(known, _)| known == version);
        if !version.is_empty() && !is_known {
            versions.push((version.clone(), revision.number));
        }
    }
    versions
}

/// Finds the revision that resulted in what is `installed` now. `revisions` are newest first.
#[must_use]
pub fn find_installed<'a>(
    revisions: &'a [StoredRevision],
    installed: &Installed,
) -> Option<&'a StoredRevision> {
    let mut done = revisions.iter().filter(|one| one.operation.is_done());
    done.find(|one| one.operation.installed.is_same_target(installed))
}

/// Whether a change was begun and did not end, other than a rollback, which already has a revision to go back to.
#[must_use]
pub fn is_interrupted(record: &AddonInstallation) -> bool {
    let status = record.status.as_ref();
    let operation = status.and_then(|status| status.operation.as_ref());
    operation.is_some_and(|operation| operation.verb != Verb::Rollback)
}

/// Whether an operation changed nothing compared to the one before it: a repair, or the same failure again. It gets no revision and no
/// entry in the history, or a loop would push out all others.
#[must_use]
pub fn is_repeated(last: &HistoryEntry, now: &HistoryEntry, is_same_spec: bool) -> bool {
    let is_same = last.installed.is_same_target(&now.installed);
    let is_repair = now.is_done() && last.is_done() && is_same_spec;
    let fails_again = !now.is_done() && !last.is_done();
    let upgrades = now.verb == Verb::Upgrade;
    is_same && ((is_repair && upgrades) || ((is_repair || fails_again) && last.verb == now.verb))
}

/// Whether a rollback holds an installation at the entry that it restored: until the spec changes, the loop installs no other entry
/// (semantics 12.3). Repairs do not change this.
#[must_use]
pub fn is_held_by_rollback(record: &AddonInstallation) -> bool {
    let Some(status) = &record.status else {
        return false;
    };
    let Some(installed) = status.installed.as_ref().map(content_key) else {
        return false;
    };
    let history = status.history.iter();
    let mut of_entry = history.take_while(|one| content_key(&one.installed) == installed);
    status.observed_generation == record.metadata.generation
        && of_entry.any(|one| one.verb == Verb::Rollback)
}

/// Returns what an interrupted rollback was restoring, if the spec still asks for it.
#[must_use]
pub fn interrupted_rollback_target(record: &AddonInstallation) -> Option<&Installed> {
    let operation = record.status.as_ref()?.operation.as_ref()?;
    let target = operation.target.as_ref()?;
    let reference = &record.spec.addon_ref;
    let is_asked_for = match target.version.as_str() {
        "" => reference.id.as_deref() == Some(target.id.as_str()),
        version => reference.version.as_deref() == Some(version),
    };
    (operation.verb == Verb::Rollback && is_asked_for).then_some(target)
}

/// Finds the revision that an interrupted rollback was restoring, if the spec still asks for it: the one that resulted in exactly the
/// target, else one with the same content. `revisions` are newest first.
#[must_use]
pub fn find_interrupted_rollback<'a>(
    revisions: &'a [StoredRevision],
    record: &AddonInstallation,
) -> Option<&'a StoredRevision> {
    let target = interrupted_rollback_target(record)?;
    find_installed(revisions, target).or_else(|| find_by_content(revisions, target))
}

/// Finds the newest revision that resulted in this content, whatever its values. `revisions` are newest first.
#[must_use]
pub fn find_by_content<'a>(
    revisions: &'a [StoredRevision],
    installed: &Installed,
) -> Option<&'a StoredRevision> {
    let mut done = revisions.iter().filter(|one| one.operation.is_done());
    done.find(|one| content_key(&one.operation.installed) == content_key(installed))
}

/// Returns the fields that identify the content of an entry.
fn content_key(installed: &Installed) -> (&str, &str, &str) {
    let Installed {
        version,
        id,
        manifest_hash,
        ..
    } = installed;
    (version, id, manifest_hash)
}

/// Selects the oldest revisions to delete if there are more than [`MAX_REVISIONS`], except for the newest one that succeeded. `revisions` are newest
/// first, each with whether it succeeded.
#[must_use]
pub fn select_surplus<T>(revisions: Vec<(T, bool)>) -> Vec<T> {
    let last_done = revisions.iter().position(|(_, is_done)| *is_done);
    let count = revisions.len().saturating_sub(MAX_REVISIONS);
    let oldest = revisions.into_iter().enumerate().rev();
    oldest
        .filter(|(at, _)| Some(*at) != last_done)
        .take(count)
        .map(|(_, (one, _))| one)
        .collect()
}

/// Returns a spec without the fields that pin it to a version.
fn without_pin(spec: &AddonInstallationSpec) -> AddonInstallationSpec {
    let mut spec = spec.clone();
    spec.addon_ref.version = None;
    spec.addon_ref.id = None;
    spec.addon_ref.digest = None;
    spec
}

fn json_size(data: &Value) -> usize {
    data.to_string().len()
}

#[cfg(test)]
mod tests;
