//! The plan: what one operation will do to one installation, as a value that leaves no decisions to the engine.
//!
//! `diff`, `--dry-run`, the confirmation, the plan file and the executor all use the same [`InstallationPlan`]. Its JSON holds
//! everything but the contents of objects, so no Secret is ever written to a file.
//!
//! | module | contents |
//! |---|---|
//! | [`desired`] | the objects that an installation should have |
//! | [`choices`] | the user's choices about how plans are made |
//! | [`claims`] | the objects that other installations use |
//! | [`inventory`], [`snapshot`] | the recorded and the live objects, as values |
//! | `relocate` | recorded objects whose kind moved to another group |
//! | [`mod@kops`] | what fields of kops' entries mean |
//! | [`facts`] | the facts that a plan is based on, to check later whether it is still valid |
//! | [`planner`], `decide` | the plan: what happens to each object, and which objects cannot be applied |
//! | [`restored`] | whether the record is older than the cluster |
//! | [`adoption`], [`found`] | which objects of other tools an installation may take over, and what these tools installed |
//! | [`gitops`] | the objects that Argo CD and Flux reconcile, and the fields of an installation that they own |
//! | [`conflicts`], [`recreate`], [`immutable`], [`holder`] | conflicts with other owners, immutable fields, and values only one object can have |
//! | [`dangling`] | the objects that a command names and that do not exist |
//! | [`refusal`] | the writes of a plan that the API server refuses in a dry run |
//! | [`mod@prune`], [`teardown`] | which objects are deleted or kept, and in which order |
//! | [`requires`], [`brought`], [`graph`], [`schedule`], [`order`] | which add-ons and objects wait for which, and which can start now |
//! | [`closing`] | the steps that follow once the objects are applied and ready |
//! | [`crd_safety`], [`migration`] | what changed CRDs do to live objects, and to the versions in which these are stored |
//! | [`lasting`] | what a rollback does not undo |
//! | [`readiness`], [`standing`] | whether an object is ready, in kstatus' terms; how an installation stands |
//! | [`history`] | the stored revisions of an installation, and the choice of the one for a rollback |
//! | [`changes`], [`summary`], [`mod@file`] | a plan as text for people, and a plan in a file |

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod adoption;
pub mod brought;
pub mod changes;
pub mod choices;
pub mod claims;
pub mod closing;
pub mod conflicts;
pub mod continuation;
pub mod crd_safety;
pub mod dangling;
mod decide;
pub mod desired;
pub mod facts;
pub mod file;
pub mod fit;
pub mod found;
pub mod gitops;
pub mod graph;
pub mod history;
pub mod holder;
pub mod immutable;
pub mod inventory;
pub mod kops;
pub mod lasting;
pub mod migration;
pub mod order;
pub mod planner;
pub mod prune;
pub mod readiness;
pub mod recreate;
mod references;
pub mod refusal;
pub mod release_records;
mod relocate;
pub mod requires;
pub mod restored;
pub mod review;
pub mod schedule;
pub mod snapshot;
pub mod standing;
pub mod summary;
pub mod teardown;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use closing::ClosingStep;
use common::api::catalogue::ResourceType;
use common::api::installation::{ClusterIdentity, Installed};
use common::api::names::InstallationName;
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::traits::KeptKind;
use common::values::mask::SecretMask;
use conflicts::Policy;
use facts::{EntryFacts, PlanFacts, RecordFacts, WantedRecord};
use inventory::Inventory;
use readiness::health_check::HealthChecks;

pub use common::api::verb::Verb;

/// What one operation will do to one installation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstallationPlan {
    /// The installation.
    pub installation: InstallationName,
    /// The add-on.
    pub addon: String,
    /// The kind of operation.
    pub verb: Verb,
    /// The version that is installed now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Installed>,
    /// The version that will be installed; `None` for an uninstallation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Installed>,
    /// The catalogue entry that is installed; `None` for an uninstallation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryFacts>,
    /// The revision that a rollback goes back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// The record as the operation will write it.
    pub wanted: WantedRecord,
    /// The record that existed when the plan was made; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordFacts>,
    /// Installations of the same command that this one requires. They are installed before it and uninstalled after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<InstallationName>,
    /// Types that the cluster must serve before the operation begins; other installations of the same command may add them.
    #[serde(skip)]
    pub types: Vec<ResourceType>,
    /// The target namespace, if it does not exist and will be created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_namespace: Option<String>,
    /// The namespace that is deleted with the installation that created it, if nothing else is left in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_namespace: Option<String>,
    /// The objects to apply, sorted by key. The [`graph::Graph`] of the command gives their order.
    pub steps: Vec<Step>,
    /// The steps that follow once all `steps` succeeded, sorted by stage ([`closing`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closing: Vec<ClosingStep>,
    /// Our objects that are no longer in the manifest and stay, e.g. because kinds that hold data are deleted only on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retained: Vec<ObjectKey>,
    /// Recorded objects that cannot be read and may exist. They stay recorded, and so does the installation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreachable: Vec<ObjectKey>,
    /// Objects that need no request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged: Vec<ObjectKey>,
    /// Drift: fields of unchanged objects that an earlier apply left to other managers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yielded: Vec<Yielded>,
    /// Objects to wait for until they are ready, sorted by key. They include unchanged ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait_for: Vec<Target>,
    /// The Jobs in `wait_for` that the server deletes after their end. A digest is recorded only for those that were seen complete,
    /// because nothing else shows after the deletion that they have run.
    #[serde(skip)]
    pub expiring: BTreeSet<ObjectKey>,
    /// Objects with random content that is not kept: each plan has other values for them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub generated: BTreeSet<ObjectKey>,
    /// The identity of the objects' cluster, for the record; `None` if the uid of its kube-system may not be read.
    #[serde(skip)]
    pub cluster: Option<ClusterIdentity>,
    /// The changes of the inventory if the operation only records the installation again (semantics 13.11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<restored::rebuild::RebuiltInventory>,
    /// Warnings, which do not stop the operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What changed CRDs do to live objects: see [`InstallationPlan::check_breakages`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakages: Vec<crd_safety::Breakage>,
    /// The changes of CRDs that break no live object.
    #[serde(skip)]
    pub harmless: Vec<crd_safety::HarmlessChanges>,
    /// Objects that cannot be changed in place, or that need something that a pruned object still holds: see [`immutable::check`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recreations: Vec<immutable::Recreation>,
    /// Pruned objects that the user named and that may therefore be deleted first.
    #[serde(skip)]
    pub may_go_first: BTreeSet<ObjectKey>,
    /// Writes that the server refuses in a dry run: see [`refusal::check`].
    #[serde(skip)]
    pub refused: Vec<refusal::RefusedWrite>,
    /// Writes that the server could not check in a dry run. They do not stop the operation.
    #[serde(skip)]
    pub unjudged: Vec<immutable::UnjudgedWrite>,
    /// The fields that the dry run of each checked step changes, sorted by path: see [`InstallationPlan::changes`].
    #[serde(skip)]
    pub changed_fields: BTreeMap<ObjectKey, Vec<changes::FieldChange>>,
    /// The state of the cluster that the plan is based on.
    pub facts: PlanFacts,
    /// The inventory to record before the first write: everything that was or will be ours.
    #[serde(skip)]
    pub union: Inventory,
    /// The inventory to record after the last write, which adds the uids and generations that the writes returned.
    #[serde(skip)]
    pub exact: Inventory,
    /// Masks content of Secrets (from values or from the manifest) in everything that is reported about the plan.
    #[serde(skip)]
    pub mask: Arc<SecretMask>,
}

/// A namespace that must exist before the first record is written into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordNamespace {
    /// Its name.
    pub name: String,
    /// Whether to create it if it does not exist.
    pub create: bool,
    /// Whether it gets its first core installation: then its deletion is guarded before the record exists (semantics 14.2).
    pub holds_core: bool,
}

impl InstallationPlan {
    /// Returns an empty plan, without objects, steps and a version to install.
    #[must_use]
    pub fn nothing(installation: InstallationName, addon: &str) -> Self {
        Self {
            installation,
            addon: addon.to_owned(),
            ..Self::default()
        }
    }

    /// Whether the plan takes over objects that no installation owns.
    #[must_use]
    pub fn takes_over(&self) -> bool {
        self.steps.iter().any(|step| step.policy.adopted.is_some())
    }

    /// Whether the operation would write nothing to the cluster but the record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
            && self.closing.iter().all(ClosingStep::is_void)
            && self.create_namespace.is_none()
            && self.rebuilt.is_none()
    }

    /// Compiles the health checks of the entry that is installed.
    #[must_use]
    pub fn health_checks(&self) -> HealthChecks {
        let written = self.to.as_ref().map(|to| to.health_check_exprs.as_slice());
        HealthChecks::compile(written.unwrap_or_default())
    }

    /// Returns the step that applies an object; `None` if the plan does not apply it.
    #[must_use]
    pub fn step(&self, key: &ObjectKey) -> Option<&Step> {
        let found = self.steps.binary_search_by(|step| step.target.key.cmp(key));
        self.steps.get(found.ok()?)
    }
}

/// One object to apply, in one request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// The object, and how requests address it.
    pub target: Target,
    /// What the step does.
    pub action: Action,
    /// The complete object to send, with its namespace and ownership marks.
    #[serde(skip)]
    pub object: Arc<Value>,
    /// uid of the live object when the plan was made; `None` if it did not exist.
    #[serde(skip)]
    pub uid: Option<String>,
    /// Digest of the object; empty for Secrets ([`desired::digest_of`]).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// resourceVersion of the live object. If the response has the same one, the apply changed nothing.
    #[serde(skip)]
    pub seen: Option<String>,
    /// What happens to fields that others changed or that are immutable.
    pub policy: Policy,
}

/// What a step does, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// The object does not exist.
    Create,
    /// It exists, and no installation owns it: this one takes it over.
    Adopt,
    /// The manifest changed.
    Update,
    /// The live object was edited.
    Restore,
    /// It may have changed (Secrets have no digest), or others changed fields that only they own.
    Refresh,
}

/// An object, and how requests address it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// The object's identity.
    pub key: ObjectKey,
    /// The API version for requests.
    pub version: String,
    /// The plural name of its kind, for URLs.
    pub plural: String,
}

impl Target {
    /// Whether deleting `other` also deletes this object: `other` is its namespace, or the CRD of its kind.
    #[must_use]
    pub fn goes_with(&self, other: &ObjectKey) -> bool {
        match KeptKind::from_key(other) {
            Some(KeptKind::Namespace) => self.key.namespace.as_ref() == Some(&other.name),
            Some(KeptKind::CustomResourceDefinition) => {
                other.name == format!("{}.{}", self.plural, self.key.group)
            }
            _ => false,
        }
    }

    /// Returns group, version and kind.
    #[must_use]
    pub fn gvk(&self) -> Gvk {
        Gvk {
            group: self.key.group.clone(),
            version: self.version.clone(),
            kind: self.key.kind.clone(),
        }
    }
}

/// Fields of one object that were left to other managers, as the policy for conflicts says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Yielded {
    /// The object.
    pub key: ObjectKey,
    /// The paths of the fields.
    pub fields: Vec<String>,
}

impl Yielded {
    /// Reads the fields from the inventory; returns `None` if none were left to other managers.
    fn of(key: &ObjectKey, item: &inventory::InventoryItem) -> Option<Self> {
        let fields = item.object.yielded.clone();
        (!fields.is_empty()).then(|| Self {
            key: key.clone(),
            fields,
        })
    }
}

/// An object that moves to another installation without being deleted (semantics 13.9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Moving {
    /// The object.
    pub key: ObjectKey,
    /// The installation that takes it over.
    pub to: InstallationName,
}

/// One object that is deleted or given back, on condition that it still has its uid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deletion {
    /// The object.
    pub target: Target,
    /// Its uid. An object with the same name and another uid is not ours.
    pub uid: String,
    /// Its resourceVersion when the plan was made. If it has changed since, the object is checked again.
    #[serde(skip)]
    pub resource_version: String,
    /// The labels that the object must still carry.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
}

/// Formats several problems as the text of one error, one per line.
fn one_a_line(problems: &[impl std::fmt::Display]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
