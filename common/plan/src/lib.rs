//! The plan: what one operation will do to one installation, as a value that leaves the engine no choices.
//!
//! `diff`, `--dry-run`, the confirmation, the plan file and the executor all take the same [`InstallationPlan`]. As JSON it has
//! everything but the contents of objects: those lie beside it, and no Secret is ever written to a file.
//!
//! | module | what it decides |
//! |---|---|
//! | [`desired`] | the wanted objects |
//! | [`choices`] | what the caller decided about how plans are made |
//! | [`claims`] | what other installations use |
//! | [`inventory`], [`snapshot`] | what is recorded and what is there, as values |
//! | `relocate` | recorded objects whose kind moved to another group |
//! | [`mod@kops`] | what kops' own tool finds recorded afterwards |
//! | [`facts`] | what a plan was made with, to tell later whether it still holds |
//! | [`planner`], `decide` | the plan: what becomes of each object, what stands in the way |
//! | [`restored`] | whether the record is older than the cluster |
//! | [`adoption`], [`found`] | which objects of other tools may become ours, and what these tools installed |
//! | [`gitops`] | what Argo CD and Flux apply again and again, and which fields of an installation are theirs |
//! | [`conflicts`], [`recreate`], [`immutable`], [`holder`] | what happens to fields that others hold, that never change, or that ask for what only one object can have |
//! | [`refusal`] | what the API server refuses of a plan in a dry run |
//! | [`mod@prune`], [`teardown`] | what goes, what is kept, and in which order |
//! | [`requires`], [`brought`], [`graph`], [`schedule`], [`order`] | which add-ons and objects wait for which, and which may begin now |
//! | [`closing`] | what follows once the objects are applied: the steps of the stages after the gate |
//! | [`crd_safety`], [`migration`] | what changed definitions do to live objects, and to the versions that these are stored in |
//! | [`lasting`] | what going back does not undo |
//! | [`readiness`], [`standing`] | whether an object is ready, in kstatus' terms; how an installation stands |
//! | [`history`] | what is kept of each revision of an installation, and which one a rollback goes back to |
//! | [`changes`], [`summary`], [`mod@file`] | what people read of a plan, and a plan in a file |

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
pub mod refusal;
pub mod release_records;
mod relocate;
pub mod requires;
pub mod restored;
pub mod schedule;
pub mod snapshot;
pub mod standing;
pub mod summary;
pub mod teardown;
mod verb;

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

pub use verb::Verb;

/// What one operation will do to one installation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstallationPlan {
    /// The installation.
    pub installation: InstallationName,
    /// The add-on.
    pub addon: String,
    /// What it is called.
    pub verb: Verb,
    /// What is installed now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Installed>,
    /// What will be installed; `None` for an uninstallation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Installed>,
    /// The entry that it comes from; `None` for an uninstallation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryFacts>,
    /// The revision that a rollback goes back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// The record as it should be.
    pub wanted: WantedRecord,
    /// The record as it was; `None` where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordFacts>,
    /// Installations of the same command that it requires: installed before it, uninstalled after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<InstallationName>,
    /// Types that the cluster has to serve before it begins, and that other installations of the same command may bring while they run.
    #[serde(skip)]
    pub types: Vec<ResourceType>,
    /// The target namespace, where it is missing and will be created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_namespace: Option<String>,
    /// The namespace that is deleted with the installation that created it, if nothing else is left in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_namespace: Option<String>,
    /// What is applied, sorted by key; the [`graph::Graph`] of the command says in which order.
    pub steps: Vec<Step>,
    /// What follows once all steps succeeded, sorted by stage ([`closing`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closing: Vec<ClosingStep>,
    /// Ours and no longer in the manifest, but of a kind that is deleted only where the caller names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retained: Vec<ObjectKey>,
    /// Recorded objects of which it is not known whether they exist: they stay recorded, and so does the installation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreachable: Vec<ObjectKey>,
    /// Wanted objects that are as they should be: no request at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged: Vec<ObjectKey>,
    /// Fields that an earlier apply left to other managers, of objects that stay as they are: drift.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yielded: Vec<Yielded>,
    /// Objects to watch until they are ready, changed or not, sorted by key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait_for: Vec<Target>,
    /// The Jobs of them that the server deletes after their end. Only those that were seen complete are recorded with a digest: once they
    /// are gone, nothing else tells whether they have run.
    #[serde(skip)]
    pub expiring: BTreeSet<ObjectKey>,
    /// Objects whose content is partly made at random and not kept: another plan has other values of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub generated: BTreeSet<ObjectKey>,
    /// By what the record will tell the cluster of the objects from others; `None` where the uid of its kube-system may not be read.
    #[serde(skip)]
    pub cluster: Option<ClusterIdentity>,
    /// How the inventory changes that is recorded again, where nothing else does (semantics 13).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<restored::rebuild::RebuiltInventory>,
    /// Things that the user should know and that stop nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What changed definitions do to live objects: see [`InstallationPlan::check_breakages`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakages: Vec<crd_safety::Breakage>,
    /// Objects that cannot be changed in place, or that need what a pruned object holds: see [`immutable::check`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recreations: Vec<immutable::Recreation>,
    /// Pruned objects that may be deleted before the rest, as the user named them.
    #[serde(skip)]
    pub may_go_first: BTreeSet<ObjectKey>,
    /// Writes that the server refuses: see [`refusal::check`].
    #[serde(skip)]
    pub refused: Vec<refusal::RefusedWrite>,
    /// Writes that the server could not judge beforehand; they decide nothing.
    #[serde(skip)]
    pub unjudged: Vec<immutable::UnjudgedWrite>,
    /// What was there.
    pub facts: PlanFacts,
    /// Recorded before the first write: everything that was or will be ours.
    #[serde(skip)]
    pub union: Inventory,
    /// Recorded after the last one, with the uids and generations that the writes returned.
    #[serde(skip)]
    pub exact: Inventory,
    /// Hides in everything that is reported of the plan what comes from Secrets: those of the values, and those of the manifest.
    #[serde(skip)]
    pub mask: Arc<SecretMask>,
}

/// A namespace that has to exist before the first record is written into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordNamespace {
    /// Its name.
    pub name: String,
    /// Whether it is created where it is missing.
    pub create: bool,
    /// Whether it gets a first core installation: then its deletion is guarded before the record is there (semantics 14).
    pub holds_core: bool,
}

impl InstallationPlan {
    /// A plan of an uninstallation that does nothing.
    #[must_use]
    pub fn nothing(installation: InstallationName, addon: &str) -> Self {
        Self {
            installation,
            addon: addon.to_owned(),
            ..Self::default()
        }
    }

    /// Whether objects that no installation owned become ours.
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

    /// What is sent for an object; `None` where it is as it should be.
    #[must_use]
    pub fn step(&self, key: &ObjectKey) -> Option<&Step> {
        let found = self.steps.binary_search_by(|step| step.target.key.cmp(key));
        self.steps.get(found.ok()?)
    }
}

/// One object to apply: one request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// Where the request goes.
    pub target: Target,
    /// What it does.
    pub action: Action,
    /// The whole object as it is sent, with namespace and ownership marks.
    #[serde(skip)]
    pub object: Arc<Value>,
    /// uid of the live object that the plan was made for; `None` where there was none.
    #[serde(skip)]
    pub uid: Option<String>,
    /// Digest of the object; empty for Secrets ([`desired::digest_of`]).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// resourceVersion of the live object: an answer with the same one says that nothing changed.
    #[serde(skip)]
    pub seen: Option<String>,
    /// What happens to fields that others changed or that cannot change.
    pub policy: Policy,
}

/// What a step does, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// The object is not there.
    Create,
    /// It is there, and no installation owns it: it becomes ours.
    Adopt,
    /// The manifest changed.
    Update,
    /// The live object was edited.
    Restore,
    /// It is not known whether it changed (Secrets carry no digest), or others changed what is theirs alone.
    Refresh,
}

/// An object and how its requests are addressed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// Identity.
    pub key: ObjectKey,
    /// Version that requests use.
    pub version: String,
    /// Plural name in URLs.
    pub plural: String,
}

impl Target {
    /// Whether it would be deleted with another object: with its namespace, or with the definition of its kind.
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

    /// Group, version and kind.
    #[must_use]
    pub fn gvk(&self) -> Gvk {
        Gvk {
            group: self.key.group.clone(),
            version: self.version.clone(),
            kind: self.key.kind.clone(),
        }
    }
}

/// Fields of one object that other managers hold, because the policy was to yield.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Yielded {
    /// The object.
    pub key: ObjectKey,
    /// Their paths.
    pub fields: Vec<String>,
}

impl Yielded {
    /// What the inventory remembers of an object; `None` where it has all of its fields.
    fn of(key: &ObjectKey, item: &inventory::InventoryItem) -> Option<Self> {
        let fields = item.object.yielded.clone();
        (!fields.is_empty()).then(|| Self {
            key: key.clone(),
            fields,
        })
    }
}

/// An object that changes its owner without being deleted (semantics 13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Moving {
    /// The object.
    pub key: ObjectKey,
    /// The installation that takes it over.
    pub to: InstallationName,
}

/// One object that stops being ours, deleted or not, with the precondition of its uid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deletion {
    /// The object.
    pub target: Target,
    /// Its uid: another object of that name is not ours.
    pub uid: String,
    /// Its resourceVersion when the plan was made: as long as it has that, it is as it was judged.
    #[serde(skip)]
    pub resource_version: String,
    /// The labels that made it ours to delete.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
}

/// The text of an error that holds every problem of its kind.
fn one_a_line(problems: &[impl std::fmt::Display]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
