//! The plan file: what a command would do, as JSON that people and CI review and that `apply` runs.
//!
//! It holds what is needed to plan again (specs and flags), what the plan was made with (facts), what it would do (steps,
//! prune, changes), and a digest of all that. Running it means to plan again and to compare: [`moved()`] tells everything
//! that is not as it was. Secrets are in it by name only: no values, and no digests, for these could be guessed
//! (semantics 13 and 17). `spec.values` stands in it as it was typed: Secrets have no place there (semantics 10).
//!
//! Two plans of an unmoved cluster are the same bytes: the file holds no time and no random number.

mod build;
mod moved;
mod read;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::changes::ObjectDiff;
use super::conflicts::Policy;
use super::prune::KeptKind;
use super::prune::limit::PruneLimit;
use super::{Action, Verb};
use crate::api::installation::{AddonInstallationSpec, Installed};
use crate::api::names::InstallationName;
use crate::catalogue::Origin;
use crate::manifest::key::ObjectKey;

pub use build::{Built, installation};
pub use moved::{Difference, Moved, moved, moved_record};
pub use read::{FileError, LARGEST, read, write};

/// `kind` of a plan file.
pub const KIND: &str = "AddonPlan";

/// A plan file without its digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanFile {
    /// `kubectl-addons.dev/v1alpha1`.
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Version of the program that wrote it.
    pub tool: String,
    /// The cluster that it was made for.
    pub cluster: ClusterFacts,
    /// What the user said about how plans are made.
    pub flags: Flags,
    /// What changes, in the order of execution.
    pub installations: Vec<PlannedInstallation>,
}

/// Which cluster a plan was made for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterFacts {
    /// uid of its namespace kube-system.
    pub kube_system_uid: String,
    /// `gitVersion` of its API server: what entries have to fit.
    pub version: String,
}

/// Flags that shape plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Flags {
    /// `--repair`.
    #[serde(default)]
    pub repair: bool,
    /// `--allow-downgrade`.
    #[serde(default)]
    pub allow_downgrade: bool,
    /// `--allow-prune`, in percent.
    #[serde(default)]
    pub allow_prune: PruneLimit,
    /// `--delete-crds`, `--delete-namespaces`, `--delete-volumes`: kinds that are deleted although they hold data.
    #[serde(default)]
    pub delete: BTreeSet<KeptKind>,
    /// `--allow-crd-breakage`.
    #[serde(default)]
    pub allow_crd_breakage: bool,
    /// `--recreate`, as it was typed.
    #[serde(default)]
    pub recreate: Vec<String>,
}

/// What changes in one installation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedInstallation {
    /// The installation.
    pub installation: InstallationName,
    /// What it is called.
    pub verb: Verb,
    /// What is installed now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Installed>,
    /// What will be.
    pub to: Installed,
    /// The entry that it comes from.
    pub entry: EntryFacts,
    /// The record as it should be.
    pub wanted: WantedRecord,
    /// The record as it was; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordFacts>,
    /// What is applied, sorted by key.
    pub steps: Vec<PlannedStep>,
    /// The namespace that is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_namespace: Option<String>,
    /// What is deleted, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prune: Vec<PlannedDeletion>,
    /// What is let go of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub release: Vec<ObjectKey>,
    /// What stays although it is gone from the manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retained: Vec<ObjectKey>,
    /// How many objects stay as they are.
    pub unchanged: usize,
    /// What changed definitions do to live objects, in words: what was accepted is this, and no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakages: Vec<String>,
    /// What the user should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What the server said to a dry run, field by field; Secrets are masked. For review: it decides nothing.
    pub changes: Vec<ObjectDiff>,
    /// What was there.
    pub facts: Facts,
}

/// An entry of a catalogue or index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryFacts {
    /// The add-on.
    pub addon: String,
    /// Where the entry comes from.
    pub origin: Origin,
    /// Its place there, for people.
    pub place: String,
    /// Digest of the entry.
    pub digest: String,
}

/// The record that a plan leads to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WantedRecord {
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Its finalizers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Its spec.
    pub spec: AddonInstallationSpec,
}

/// The record that a plan was made with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordFacts {
    /// Its uid.
    pub uid: String,
    /// Digest of its spec, labels and annotations.
    pub spec: String,
    /// Digest of its inventory.
    pub inventory: String,
    /// Whether an operation runs, or was cut off.
    pub operation: bool,
}

/// One object that is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedStep {
    /// The object.
    pub key: ObjectKey,
    /// Its API version.
    pub version: String,
    /// What is done.
    pub action: Action,
    /// Digest of the object as it is sent; absent for Secrets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// What happens to fields that others changed or that cannot change.
    pub policy: Policy,
}

/// One object that is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedDeletion {
    /// The object.
    pub key: ObjectKey,
    /// Its uid.
    pub uid: String,
}

/// What was there when a plan was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Facts {
    /// The wanted and recorded objects that exist, sorted by key.
    pub live: Vec<LiveFact>,
    /// The namespaces that objects stand in, as far as they exist.
    pub namespaces: BTreeSet<String>,
    /// The kinds of the wanted and recorded objects, as the cluster serves them.
    pub kinds: Vec<KindFact>,
}

/// One live object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LiveFact {
    /// The object.
    pub key: ObjectKey,
    /// Its uid.
    pub uid: String,
    /// metadata.generation; absent where the kind has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// metadata.resourceVersion, where the kind has no generation and no controller that writes its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Value of the owner label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it is being deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminating: bool,
}

/// How a kind is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindFact {
    /// API group, empty for core.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Its preferred version and, behind a slash, its plural; absent where the cluster does not serve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
}

#[cfg(test)]
mod tests;
