//! `AddonInstallation`: an installed add-on, with its cluster, values and status.
//!
//! The status is the engine's record (semantics 13.1): one function writes it, as one PUT of the whole object with its
//! resourceVersion.

#![expect(
    dead_code,
    reason = "the copy of a spec that its schema is derived from never reads `unreadable`"
)]

mod attempt;
pub mod core_guard;
pub mod format;
mod former;
mod from;
mod history;
mod installed;
mod inventory;
mod patches;
mod read;
mod signature;
mod values_from;

pub use attempt::PlanningAttempt;
pub use former::{FormerObject, FormerRecord, FormerTool};
pub use from::AddonFrom;
pub use history::{HistoryEntry, RecordedOutcome};
pub use inventory::{InventoryGroup, InventoryObject, LiveState, ObjectState, namespaces};
pub use patches::{ObjectPatch, PatchTarget};
pub use signature::{Signature, SignatureMethod};
pub use values_from::{SecretKeyRef, ValuesFromSource};

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::catalogue::{HealthCheckExpr, Requirement, free_form};
use super::conditions::Condition;
use super::names::INDEX_BUILTIN;
use super::rules::RuleSet;
use super::verb::RecordedVerb;
use crate::entrance::UnreadableField;

/// An installation of an add-on. Its namespace determines the cluster (semantics 6.1).
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kubectl-addons.dev",
    version = "v1alpha1",
    kind = "AddonInstallation",
    namespaced,
    shortname = "ainst",
    category = "addons",
    doc = "An installation of one add-on; its namespace says in which cluster.",
    status = "AddonInstallationStatus",
    derive = "PartialEq",
    printcolumn(name = "Addon", type_ = "string", json_path = ".spec.addonRef.name"),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetNamespace"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.installed.version"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Core", type_ = "boolean", json_path = ".spec.coreAddon", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = kube::core::Rule::new("has(self.spec)").message("spec is required")
)]
#[serde(rename_all = "camelCase")]
// Transition rules are on `spec` and use has(): a rule on a field does not run when the field is removed (semantics 8).
#[x_kube(
    validation = kube::core::Rule::new("self.addonRef.name == oldSelf.addonRef.name")
        .message("addonRef.name is immutable: uninstall, then install the other add-on"),
    validation = kube::core::Rule::new(
        "!has(oldSelf.targetNamespace) || (has(self.targetNamespace) && self.targetNamespace == oldSelf.targetNamespace)")
        .message("targetNamespace is immutable: uninstall, then install into the other namespace"),
    validation = kube::core::Rule::new(
        "!(has(oldSelf.coreAddon) && oldSelf.coreAddon) || (has(self.coreAddon) && self.coreAddon)")
        .message("coreAddon never goes back from true to false: a core add-on is released"),
)]
// Fields that a file in Git may set explicitly and a record may leave out have a default in the schema: otherwise, writing back a
// record would remove what Git sets, and show a difference (semantics 10.2).
pub struct AddonInstallationSpec {
    /// The add-on, its version and its origin.
    pub addon_ref: AddonRef,
    /// Whether the add-on is a core add-on, which cannot be deleted. Once true, it stays true.
    #[serde(default)]
    pub core_addon: bool,
    /// The namespace of objects that do not name one. Immutable once set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub target_namespace: Option<String>,
    /// Whether a missing target namespace is created.
    #[serde(default = "yes")]
    pub create_namespace: bool,
    /// The merged values: those of the user, and defaults (the annotation `kubectl-addons.dev/defaulted` lists these).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_form")]
    pub values: Option<Value>,
    /// Values that are read from Secrets when rendering, and stored nowhere else.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub values_from: Vec<ValuesFromSource>,
    /// `HOST[/PATH]` of a private registry that replaces the catalogue's. Images and registries of sources are rewritten to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub registry: Option<String>,
    /// Whether the CRDs in `crds/` of charts are left out.
    #[serde(
        default,
        rename = "skipCRDs",
        skip_serializing_if = "std::ops::Not::not"
    )]
    #[schemars(extend("default" = false))]
    pub skip_crds: bool,
    /// Changes of the rendered objects, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("default" = []))]
    pub patches: Vec<ObjectPatch>,
    /// What happens to edits of live objects between versions.
    #[serde(default)]
    pub reconcile: ReconcilePolicy,
    /// What happens to fields of the installation's objects that other field managers changed.
    #[serde(default)]
    pub conflicts: ConflictPolicy,
    /// The ServiceAccount in this namespace whose rights are used to reconcile the objects (semantics 16.6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_account_name: Option<String>,
    /// What happens to the objects when the installation is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Whether the installation is suspended: nothing is done while it is.
    #[serde(default)]
    pub suspend: bool,
    /// The part of the stored record that cannot be read and is missing here, if any. Never written.
    #[serde(skip)]
    #[schemars(skip)]
    pub unreadable: Option<UnreadableField>,
}

fn yes() -> bool {
    true
}

impl AddonInstallationSpec {
    /// Whether others rely on it: a core add-on, or the webhook and the policies that `init` installs.
    #[must_use]
    pub fn is_guard(&self) -> bool {
        self.core_addon || self.addon_ref.index.as_deref() == Some(INDEX_BUILTIN)
    }

    /// Returns what happens to edits and deletions of its objects while nothing is due. Those of a guard are always repaired
    /// (semantics 12.1).
    #[must_use]
    pub fn effective_reconcile(&self) -> ReconcilePolicy {
        match self.is_guard() {
            true => ReconcilePolicy::Ensure,
            false => self.reconcile,
        }
    }
}

/// Name and version of an add-on, and at most one origin. Without an origin, any catalogue is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new(
    "[has(self.catalogue), has(self.index), has(self.directory), has(self.from)].filter(x, x).size() <= 1")
    .message("at most one of catalogue, index, directory and from"))]
pub struct AddonRef {
    /// Name of the add-on. Immutable.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Version. Changing it upgrades the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub version: Option<String>,
    /// kops id of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub id: Option<String>,
    /// Name of an AddonCatalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub catalogue: Option<String>,
    /// URL of a kops index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub index: Option<String>,
    /// Path of a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub directory: Option<String>,
    /// The chart or the manifest itself, if no catalogue lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Box<AddonFrom>>,
    /// Digest of the entry in its catalogue. An entry with another digest is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub digest: Option<String>,
}

impl AddonRef {
    /// Whether its entry is in a catalogue of the cluster, named or not.
    #[must_use]
    pub fn is_of_catalogue(&self) -> bool {
        self.index.is_none() && self.directory.is_none() && self.from.is_none()
    }
}

/// What happens to edits of live objects between versions (semantics 12.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReconcilePolicy {
    /// Edits by users stay until the next version, as in kops.
    #[default]
    Once,
    /// Drift is repaired.
    Ensure,
}

/// What happens to fields of the installation's objects that other field managers changed (semantics 12.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConflictPolicy {
    /// The installation takes them back.
    #[default]
    Take,
    /// The operation fails.
    Fail,
    /// The other field manager keeps them.
    Yield,
}

/// What happens to the objects when the installation is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// They are deleted.
    #[default]
    Delete,
    /// They stay.
    Orphan,
}

/// The record of the engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonInstallationStatus {
    /// The format of this status; 1 if absent. A release never overwrites a format that is newer than those it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<u32>,
    /// Generation of the spec that was last installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The state of the installation in one word, for `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<InstallationPhase>,
    /// Ready, Progressing, Stalled, Compatible, Unlisted, Drifted, NeedsConfirmation, Waiting, Contested, ManagedElsewhere; on core
    /// installations also CoreSetUnknown and DeletionBlocked.
    #[serde(default)]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// What is installed; absent until the first operation has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<Installed>,
    /// The lock and the journal; present while an operation is running, or after it was interrupted (semantics 13.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationRecord>,
    /// The attempt of a reconciler to plan the installation; present while it runs, or if it ended with its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<PlanningAttempt>,
    /// The decisions about an operation that has not ended as planned. The next client continues it with the same decisions
    /// (semantics 13.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_form")]
    pub choices: Option<Value>,
    /// The cluster of the objects (semantics 6.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterIdentity>,
    /// The target namespace, if the installation created it (semantics 7.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_namespace: Option<CreatedNamespace>,
    /// All objects of the installation, grouped by kind and namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = kube::core::ListMerge::Atomic)]
    pub inventory: Vec<InventoryGroup>,
    /// Records of other tools about adopted objects, which are set aside or about to be (semantics 12.12).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = kube::core::ListMerge::Atomic)]
    pub former: Vec<FormerRecord>,
    /// The Secrets in which helm stores the release that it installed, as the last operation left them. If they differ, helm is not
    /// run (semantics 13.8).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = kube::core::ListMerge::Atomic)]
    pub helm_records: Vec<HelmRecord>,
    /// Ended operations, newest first, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = kube::core::ListMerge::Atomic)]
    pub history: Vec<HistoryEntry>,
    /// Status fields that this release does not know. They are written back as they were read (semantics 13.12).
    #[serde(flatten)]
    #[schemars(skip)]
    pub others: BTreeMap<String, Value>,
}

/// The state of an installation in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstallationPhase {
    /// Recorded, but nothing was applied yet.
    Pending,
    /// An operation is in progress.
    Progressing,
    /// Installed, and the objects that were waited for are ready.
    Ready,
    /// Installed, without waiting for readiness.
    Installed,
    /// The last operation failed or timed out.
    Failed,
    /// Being uninstalled.
    Uninstalling,
}

/// What is installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Installed {
    /// Version as written in the entry; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// kops id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Hash of the entry or, if it has none, the sha256 of the trimmed bytes (semantics 11.4).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest_hash: String,
    /// Digest of the merged values, and of the state of the Secrets that `valuesFrom` read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub values_hash: String,
    /// Digest of the template data, if the method uses any (semantics 12.1).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template_data_hash: String,
    /// Digest of the state of the Secrets from which values and template data were read; empty if there were none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secrets_hash: String,
    /// The private registry of the images (semantics 12.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The Helm release, if helm itself installs the add-on (`template.helm.mode: release`). Then there is no inventory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm_release: Option<HelmRelease>,
    /// The rules that chose the entry: `documented` or `channels` (semantics 11.1).
    #[serde(
        default,
        deserialize_with = "super::rules::lenient",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "String")]
    pub rules: Option<RuleSet>,
    /// Other add-ons that the entry requires. Uninstalling one of them is refused even if the catalogue cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub requires: Vec<Requirement>,
    /// When objects of certain kinds are ready, as the entry says. Commands and loops judge by it without reading a catalogue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub health_check_exprs: Vec<HealthCheckExpr>,
    /// The commit or image digest that was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// What vouched for the content, if the catalogue requires signatures (semantics 11.5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// Whether the add-on was adopted from another tool, and nothing was applied yet. Then the next upgrade is due (semantics 12.11).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// When it was installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Option<Time>,
    /// The client that installed it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

impl Installed {
    /// Whether two of them differ at most in time and client. The state of their Secrets does not count, because the other hashes
    /// cover it.
    #[must_use]
    pub fn is_same_target(&self, other: &Self) -> bool {
        let bare = |installed: &Self| Self {
            at: None,
            by: String::new(),
            secrets_hash: String::new(),
            ..installed.clone()
        };
        bare(self) == bare(other)
    }
}

/// A Helm release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HelmRelease {
    /// Name of the release.
    pub name: String,
    /// Namespace of the release.
    pub namespace: String,
}

impl std::fmt::Display for HelmRelease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A Secret in which helm stores a revision of a release, as the last operation left it (semantics 13.8).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmRecord {
    /// Name of the Secret.
    pub name: String,
    /// uid of the Secret.
    pub uid: String,
    /// resourceVersion of the Secret.
    pub resource_version: String,
    /// sha256 of the objects and hooks in it, without the content of Secrets; absent if it cannot be read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

impl HelmRecord {
    /// Whether the Secret was not written since.
    #[must_use]
    pub fn is_untouched(&self, now: &Self) -> bool {
        (&self.uid, &self.resource_version) == (&now.uid, &now.resource_version)
    }

    /// Whether it stores the same release, whatever its state.
    #[must_use]
    pub fn is_same_release(&self, now: &Self) -> bool {
        (&self.uid, &self.digest) == (&now.uid, &now.digest) && !self.digest.is_empty()
    }
}

/// The lock and the journal of a running operation (semantics 13.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationRecord {
    /// Random id of this operation.
    pub id: String,
    /// `install`, `upgrade`, `rollback`, `adopt`, `uninstall`, `release` or `move`.
    #[schemars(with = "String")]
    pub verb: RecordedVerb,
    /// The holder of the lock: user, host and process, as the client names itself.
    pub holder: String,
    /// When the operation began.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub started_at: Time,
    /// When the holder last renewed the lock. The holder stops before this is `leaseSeconds` ago.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub renewed_at: Time,
    /// The number of seconds without renewal after which the next client may continue.
    pub lease_seconds: u32,
    /// What will be installed if the operation succeeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Installed>,
}

impl OperationRecord {
    /// Whether the holder may still be running. The next client continues the operation only after that.
    #[must_use]
    pub fn is_alive_at(&self, now: Timestamp) -> bool {
        let lease = SignedDuration::from_secs(i64::from(self.lease_seconds));
        now.duration_since(self.renewed_at.0) < lease
    }
}

/// Identity of the cluster of an installation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterIdentity {
    /// uid of the namespace kube-system in that cluster.
    pub kube_system_uid: String,
    /// Secret with the kubeconfig; absent for this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret: Option<String>,
}

/// A namespace that the installation created.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedNamespace {
    /// Name of the namespace.
    pub name: String,
    /// uid of the namespace. Another namespace with this name does not belong to the installation.
    pub uid: String,
}
