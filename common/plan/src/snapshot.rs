//! The live state that a plan was made for, read by metadata only (semantics 12).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::gitops::LiveReconciler;
use common::api::installation::LiveState;
use common::manifest::key::ObjectKey;

/// Metadata of one live object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveObject {
    /// metadata.uid.
    pub uid: String,
    /// metadata.generation; `None` where the kind has none.
    pub generation: Option<i64>,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// Digest of the fields that the field manager of its owner owns; empty where that has written nothing.
    pub fields: String,
    /// Digest of who wrote which fields and when, but for the status.
    pub writes: String,
    /// Value of the owner label.
    pub owner: Option<String>,
    /// The installation that its annotation names (`NAMESPACE/NAME`), which anyone who may write the object can have set.
    pub installation: Option<String>,
    /// When the field manager of that installation last wrote it, where it has.
    pub written: Option<Timestamp>,
    /// Whether it is created once and never changed (semantics 12).
    pub create_only: bool,
    /// Whether it has a deletionTimestamp.
    pub terminating: bool,
    /// Another owner, as its labels and annotations name it (Helm release, Flux, Argo CD), for refusals.
    pub other_owner: Option<String>,
    /// The tool that wrote it, where no mark names an owner: kubectl, or its first field manager.
    pub managed_by: Option<String>,
    /// The release of Helm or the application of kapp that it is of, as its marks say, whoever owns it now.
    pub former: Option<FormerMark>,
    /// The live Argo CD or Flux object that applies it; only looked for in [`Reads::adoptable`].
    pub reconciled_by: Option<LiveReconciler>,
    /// The mark that forbids its deletion, as it is written ([`super::prune::keep::mark`]).
    pub keep: Option<String>,
    /// Its controller, where an ownerReference names one.
    pub controlled_by: Option<Controller>,
    /// Its labels, of a Namespace; others are not needed.
    pub labels: BTreeMap<String, String>,
}

impl LiveObject {
    /// What tells whether it was edited.
    #[must_use]
    pub fn state(&self) -> LiveState<'_> {
        LiveState {
            uid: &self.uid,
            generation: self.generation,
            resource_version: &self.resource_version,
            fields: &self.fields,
        }
    }
}

/// What an object is of, by the marks of a tool that keeps records of what it installed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FormerMark {
    /// A release of Helm.
    Helm {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// An application of kapp, by the value of its label.
    Kapp {
        /// The value.
        label: String,
    },
}

/// The controller of an object, as its ownerReference names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Controller {
    /// Kind.
    pub kind: String,
    /// Name, in the object's namespace or in none.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
}

/// What a snapshot has to hold for a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// All wanted and all recorded objects.
    pub objects: BTreeSet<ObjectKey>,
    /// Those of them that are recorded: if one cannot be read, that is part of the answer and not an error.
    pub recorded: BTreeSet<ObjectKey>,
    /// Every namespace of a wanted object.
    pub namespaces: BTreeSet<String>,
    /// Wanted objects whose manifest sets [`super::conflicts::REPLICAS`]: only those can be in conflict with an autoscaler.
    pub replicas: BTreeSet<ObjectKey>,
    /// Wanted objects that are not recorded and may become ours: it matters whether Argo CD or Flux applies them.
    pub adoptable: BTreeSet<ObjectKey>,
    /// Value of the owner label whose objects are part of the answer although they were not asked for, as far as they are found beside
    /// others; `None` = none are.
    pub owner: Option<String>,
    /// Recorded definitions and namespaces that the plan may delete, and everything that lives in them with them.
    pub deletable: BTreeSet<ObjectKey>,
    /// Values of the owner label whose objects keep none of [`Reads::deletable`]: this installation, and those that the same
    /// command uninstalls.
    pub leaving: BTreeSet<String>,
}

/// What is known of the objects of a kind that the cluster does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// They are gone with their kind: a release of Kubernetes left it out, or its definition was deleted.
    Gone,
    /// They may exist, and why that is not known.
    Unknown(String),
}

/// The live objects that would be deleted with a definition or a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inhabited {
    /// Of a definition: the group of its objects.
    pub group: String,
    /// Of a definition: the kind of its objects.
    pub kind: String,
    /// Of a definition: its first objects.
    pub objects: Vec<ObjectKey>,
    /// Of a definition: how many more there are.
    pub more: usize,
    /// An object that carries the owner label of an installation that stays, and what its annotation names, which anyone who may
    /// write the object can have set. The installation may be recorded where this client cannot look.
    pub owned: Option<(ObjectKey, Option<String>)>,
    /// Why not everything could be looked at.
    pub unseen: Option<String>,
}

impl Inhabited {
    /// Whether an object is of the kind of this definition.
    pub(super) fn has_kind_of(&self, key: &ObjectKey) -> bool {
        self.group == key.group && self.kind == key.kind
    }
}

/// The live state of the wanted and the recorded objects.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Every one that exists.
    pub live: BTreeMap<ObjectKey, LiveObject>,
    /// Objects of [`Reads::owner`] that are neither wanted nor recorded.
    pub unasked: BTreeMap<ObjectKey, LiveObject>,
    /// Recorded objects that could not be read, and why: they may exist or not.
    pub unreadable: BTreeMap<ObjectKey, String>,
    /// Namespaces that exist, as far as they were asked for.
    pub namespaces: BTreeSet<String>,
    /// (group, kind) pairs that the cluster does not serve.
    pub unserved: BTreeMap<(String, String), Unserved>,
    /// The controller that scales each of [`Reads::replicas`]: its replicas yield, whatever the installation says (semantics 12).
    pub autoscalers: BTreeMap<ObjectKey, String>,
    /// What lives in those of [`Reads::deletable`] that exist.
    pub inhabited: BTreeMap<ObjectKey, Inhabited>,
}
