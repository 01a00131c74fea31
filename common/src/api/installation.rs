//! `AddonInstallation`: which add-on is installed in which cluster, with which values, and what became of it.
//!
//! The status is the record of the engine (semantics 13): one whole-object PUT with resourceVersion, by one function.

#![expect(
    dead_code,
    reason = "the copy of a spec that its schema is derived from never reads `unreadable`"
)]

mod attempt;
pub mod format;
mod former;
mod installed;
mod inventory;
mod read;
mod signature;
mod values_from;

pub use attempt::Attempt;
pub use former::{FormerObject, FormerRecord, FormerTool};
pub use inventory::{InventoryGroup, InventoryObject, LiveState, ObjectState, namespaces};
pub use signature::Signature;
pub use values_from::{SecretKeyRef, ValuesFrom};

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::catalogue::{Requirement, free_form};
use super::conditions::Condition;
use super::names::INDEX_BUILTIN;
use super::rules::RuleSet;
use crate::entrance::Unreadable;

/// An installation of one add-on; its namespace says in which cluster (semantics 6).
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
// Transition rules stand at spec with has(): a rule on a field does not run when the field is removed (semantics 8).
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
// What a file in Git may spell out and a record may leave out has a default in the schema: otherwise writing a record back would take
// away what Git sets, and show as a difference (semantics 10).
pub struct AddonInstallationSpec {
    /// The add-on, its version and where it comes from.
    pub addon_ref: AddonRef,
    /// A core add-on cannot be deleted; true is one-way.
    #[serde(default)]
    pub core_addon: bool,
    /// Where the objects go that name no namespace; set once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub target_namespace: Option<String>,
    /// Whether a missing target namespace is created.
    #[serde(default = "yes")]
    pub create_namespace: bool,
    /// The merged values: the user's, and what was defaulted (annotation `kubectl-addons.dev/defaulted` tells which).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_form")]
    pub values: Option<Value>,
    /// Values read from Secrets when rendering, copied nowhere.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub values_from: Vec<ValuesFrom>,
    /// `HOST[/PATH]` of a private registry, instead of the catalogue's: images and registries of sources are rewritten to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub registry: Option<String>,
    /// Whether the definitions in `crds/` of charts are left out.
    #[serde(
        default,
        rename = "skipCRDs",
        skip_serializing_if = "std::ops::Not::not"
    )]
    #[schemars(extend("default" = false))]
    pub skip_crds: bool,
    /// What happens to edits of live objects between versions.
    #[serde(default)]
    pub reconcile: Reconcile,
    /// What happens to fields of our objects that others changed.
    #[serde(default)]
    pub conflicts: Conflicts,
    /// The ServiceAccount of this namespace with whose rights the objects are reconciled (semantics 16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_account_name: Option<String>,
    /// What becomes of the objects when the installation is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Nothing is done while true.
    #[serde(default)]
    pub suspend: bool,
    /// What of the stored record cannot be read, and is therefore missing here. It is never written.
    #[serde(skip)]
    #[schemars(skip)]
    pub unreadable: Option<Unreadable>,
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

    /// What happens to edits and deletions of its objects while nothing is due. Those of a guard are always repaired (semantics 12).
    #[must_use]
    pub fn upkeep(&self) -> Reconcile {
        match self.is_guard() {
            true => Reconcile::Ensure,
            false => self.reconcile,
        }
    }
}

/// Name and version of an add-on, and at most one place where it comes from (none: any catalogue).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new(
    "[has(self.catalogue), has(self.index), has(self.directory)].filter(x, x).size() <= 1")
    .message("at most one of catalogue, index and directory"))]
pub struct AddonRef {
    /// Name of the add-on; immutable.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Version; another one = upgrade.
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
    /// Digest of the entry in its catalogue; another entry is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub digest: Option<String>,
}

/// What happens to edits of live objects between versions (semantics 12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Reconcile {
    /// kops: a user's edit stays until the next version.
    #[default]
    Once,
    /// Drift is repaired.
    Ensure,
}

/// What happens to fields of our objects that others changed (semantics 12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Conflicts {
    /// We take them back.
    #[default]
    Take,
    /// The operation fails.
    Fail,
    /// The other manager keeps them.
    Yield,
}

/// What becomes of the objects when the installation is deleted.
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
    /// The format of this status; absent = 1. A release writes over no format that is newer than those it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<u32>,
    /// Generation of the spec that was last installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One word for `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Ready, Progressing, Stalled, Compatible, Unlisted, Drifted, NeedsConfirmation, Contested, ManagedElsewhere.
    #[serde(default)]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// What is installed; absent until the first operation ended well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<Installed>,
    /// The lock and the journal: present while an operation runs, or was cut off (semantics 13).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// The attempt of a reconciler to plan the installation: present while it lasts, and where it ended with its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// What was decided about an operation that has not ended as planned: whoever continues it decides the same (semantics 13).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_form")]
    pub choices: Option<Value>,
    /// Which cluster the objects are in (semantics 6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterIdentity>,
    /// The target namespace, where we created it (semantics 7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_namespace: Option<CreatedNamespace>,
    /// Every object of the installation, grouped by kind and namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = kube::core::ListMerge::Atomic)]
    pub inventory: Vec<InventoryGroup>,
    /// Records of other tools, of what was taken over from them: set aside, or about to be (semantics 12).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = kube::core::ListMerge::Atomic)]
    pub former: Vec<FormerRecord>,
    /// The Secrets in which helm keeps the release that it installed, as the last operation left them: helm is run from no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = kube::core::ListMerge::Atomic)]
    pub helm_records: Vec<HelmRecord>,
    /// Ended operations, newest first, 10 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = kube::core::ListMerge::Atomic)]
    pub history: Vec<Revision>,
    /// What other releases wrote: it is written back as it was read.
    #[serde(flatten)]
    #[schemars(skip)]
    pub others: BTreeMap<String, Value>,
}

/// One word for how an installation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Recorded, nothing applied yet.
    Pending,
    /// An operation is under way.
    Progressing,
    /// Installed, and what was waited for is ready.
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
    /// Version as the entry spells it; empty where the entry has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// kops id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The entry's hash, or sha256 of the trimmed bytes where it has none (semantics 11).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest_hash: String,
    /// Digest of the merged values, and of which state of their Secrets `valuesFrom` was read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub values_hash: String,
    /// Digest of the data of templates, where the method takes any (semantics 12).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template_data_hash: String,
    /// Digest of which state of Secrets its values and the data of templates were read from; empty where none gave any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secrets_hash: String,
    /// The private registry that its images come from (semantics 12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The Helm release that it is, where helm itself installs (`template.helm.mode: release`): it has no inventory then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm_release: Option<HelmRelease>,
    /// Which rules chose it: `documented` or `channels` (semantics 11).
    #[serde(
        default,
        deserialize_with = "super::rules::lenient",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "String")]
    pub rules: Option<RuleSet>,
    /// Other add-ons that the entry requires: so that uninstalling one of them is refused without the catalogue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub requires: Vec<Requirement>,
    /// Resolved commit or image digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// What vouched for the content, where the catalogue says whose signatures count (semantics 11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// Whether it was taken over from another tool and nothing of it was applied yet: the next upgrade is due (semantics 12).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Option<Time>,
    /// By which client.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

impl Installed {
    /// Whether two differ only in time and client. The state of their Secrets is part of the other hashes.
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

/// A release of Helm's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HelmRelease {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

impl std::fmt::Display for HelmRelease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A Secret in which helm keeps a revision of a release, as the last operation left it (semantics 13).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmRecord {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
    /// sha256 of the objects and hooks in it, without the content of Secrets; absent where it cannot be read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

impl HelmRecord {
    /// Whether nothing was written to it since.
    #[must_use]
    pub fn is_untouched(&self, now: &Self) -> bool {
        (&self.uid, &self.resource_version) == (&now.uid, &now.resource_version)
    }

    /// Whether the release in it is the same, whatever its state.
    #[must_use]
    pub fn holds_the_same(&self, now: &Self) -> bool {
        (&self.uid, &self.digest) == (&now.uid, &now.digest) && !self.digest.is_empty()
    }
}

/// The lock and the journal of a running operation (semantics 13).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Random id of this operation.
    pub id: String,
    /// `install`, `upgrade`, `rollback`, `adopt`, `uninstall`, `release` or `move`.
    pub verb: String,
    /// Who holds the lock: user, host and process as the client names itself.
    pub holder: String,
    /// When it began.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub started_at: Time,
    /// When the holder last renewed the lock. It stops working before this is `leaseSeconds` old.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub renewed_at: Time,
    /// After how many seconds without renewal the next client may continue.
    pub lease_seconds: u32,
    /// What will be installed when it ends well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Installed>,
}

impl Operation {
    /// Whether its holder may still be at work: the next client continues it only when this is over.
    #[must_use]
    pub fn lives_at(&self, now: Timestamp) -> bool {
        let lease = SignedDuration::from_secs(i64::from(self.lease_seconds));
        now.duration_since(self.renewed_at.0) < lease
    }
}

/// Identity of the cluster that an installation is in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterIdentity {
    /// uid of the namespace kube-system of that cluster.
    pub kube_system_uid: String,
    /// Secret with the kubeconfig; absent = this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret: Option<String>,
}

/// A namespace that we created.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedNamespace {
    /// Its name.
    pub name: String,
    /// Its uid: another namespace of that name is not ours.
    pub uid: String,
}

/// One ended operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// `install`, `upgrade`, `rollback`, `adopt`, `uninstall` or `release`.
    pub verb: String,
    /// What it installed.
    pub installed: Installed,
    /// `done` or one sentence with the reason of the failure.
    pub outcome: String,
}

impl Revision {
    /// The outcome of an operation that ended as planned.
    pub const DONE: &str = "done";
    /// The outcome of an operation whose client was gone before its end.
    pub const INTERRUPTED: &str = "interrupted";

    /// That of an operation that was interrupted. `installed`: what was installed before it.
    #[must_use]
    pub fn of_interrupted(operation: &Operation, installed: Option<&Installed>) -> Self {
        let target = operation.target.as_ref().or(installed).cloned();
        Self {
            verb: operation.verb.clone(),
            installed: Installed {
                at: Some(operation.renewed_at.clone()),
                by: operation.holder.clone(),
                ..target.unwrap_or_default()
            },
            outcome: Self::INTERRUPTED.to_owned(),
        }
    }

    /// Whether it ended as planned.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.outcome == Self::DONE
    }
}
