//! The live state that a plan is made for, read by metadata only (semantics 12.5).

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
    /// metadata.generation; `None` if the kind has none.
    pub generation: Option<i64>,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// Digest of the fields that the field manager of its owner owns; empty if that manager has written nothing.
    pub fields: String,
    /// Digest of its managedFields, except those of the status.
    pub writes: String,
    /// Value of the owner label.
    pub owner: Option<String>,
    /// The installation that its annotation names (`NAMESPACE/NAME`). Anyone who may write the object can set it.
    pub installation: Option<String>,
    /// When the field manager of that installation last wrote it, if ever.
    pub last_written: Option<Timestamp>,
    /// Whether it is created once and never changed (semantics 12.9).
    pub create_only: bool,
    /// Whether it has a deletionTimestamp.
    pub terminating: bool,
    /// Another owner that its labels and annotations name (Helm release, Flux, Argo CD), for refusals.
    pub other_owner: Option<String>,
    /// The tool that wrote it, if no mark names an owner: kubectl, or its first field manager.
    pub managed_by: Option<String>,
    /// The field managers that wrote it, but those of installations and those that wrote a subresource only.
    pub managers: Vec<String>,
    /// The Helm release or kapp application that its marks name, whoever owns it now.
    pub former: Option<FormerMark>,
    /// The live Argo CD or Flux object that applies it. Only looked up for objects in [`SnapshotRequest::adoptable`].
    pub reconciled_by: Option<LiveReconciler>,
    /// The mark that forbids its deletion, as written ([`super::prune::keep::mark`]).
    pub keep: Option<String>,
    /// Its controller, if an ownerReference names one.
    pub controlled_by: Option<Controller>,
    /// Its labels, if it is a Namespace; others are not needed.
    pub labels: BTreeMap<String, String>,
}

impl LiveObject {
    /// Returns the state that shows whether it was edited.
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

/// The release or application of an object, by the marks of a tool that keeps records of what it installed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FormerMark {
    /// A Helm release.
    Helm {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A kapp application, known by the value of its label.
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

/// The objects that a snapshot has to contain for a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// All desired and all recorded objects.
    pub objects: BTreeSet<ObjectKey>,
    /// The recorded ones of these. If one cannot be read, the snapshot says so instead of failing.
    pub recorded: BTreeSet<ObjectKey>,
    /// The namespaces of all desired objects.
    pub namespaces: BTreeSet<String>,
    /// Desired objects whose manifest sets [`super::conflicts::REPLICAS`]: only these can conflict with an autoscaler.
    pub replicas: BTreeSet<ObjectKey>,
    /// Unrecorded desired objects that may be adopted. Whether Argo CD or Flux applies them has to be looked up.
    pub adoptable: BTreeSet<ObjectKey>,
    /// An owner label. The snapshot also contains objects with it that were not asked for, if its LISTs find them; `None` adds none.
    pub owner: Option<String>,
    /// Recorded CRDs and namespaces that the plan may delete. Their contents, which would be deleted with them, have to be looked up.
    pub deletable: BTreeSet<ObjectKey>,
    /// Owner labels whose objects do not prevent the deletion of [`SnapshotRequest::deletable`]: those of this installation, and of others that the
    /// same command uninstalls.
    pub leaving: BTreeSet<String>,
}

/// What is known about the objects of a kind that the cluster does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnservedKind {
    /// They were deleted with their kind: a release of Kubernetes dropped it, or its CRD was deleted.
    Gone,
    /// They may exist. Holds why this is unknown.
    Unknown(String),
}

/// The live objects that would be deleted with a CRD or a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inhabitants {
    /// The group of the objects, for a CRD.
    pub group: String,
    /// The kind of the objects, for a CRD.
    pub kind: String,
    /// The first objects, for a CRD.
    pub objects: Vec<ObjectKey>,
    /// The number of further objects, for a CRD.
    pub more: usize,
    /// An object with the owner label of an installation that stays, and the installation that its annotation names, which anyone who may
    /// write the object can set. The installation may be recorded where this client cannot look.
    pub owned: Option<(ObjectKey, Option<String>)>,
    /// The reason why not all objects could be read.
    pub unreadable_reason: Option<String>,
}

impl Inhabitants {
    /// Whether an object is of the kind of this CRD.
    pub(super) fn has_kind_of(&self, key: &ObjectKey) -> bool {
        self.group == key.group && self.kind == key.kind
    }
}

/// The live state of the desired and the recorded objects.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Those that exist.
    pub live: BTreeMap<ObjectKey, LiveObject>,
    /// Objects with the label [`SnapshotRequest::owner`] that are neither desired nor recorded.
    pub unrequested: BTreeMap<ObjectKey, LiveObject>,
    /// Recorded objects that could not be read, and why. They may or may not exist.
    pub unreadable: BTreeMap<ObjectKey, String>,
    /// The requested namespaces that exist.
    pub namespaces: BTreeSet<String>,
    /// Groups and kinds that the cluster does not serve.
    pub unserved: BTreeMap<(String, String), UnservedKind>,
    /// The controller that scales each of [`SnapshotRequest::replicas`]. Their replicas yield to it, whatever the installation says (semantics 12.9).
    pub autoscalers: BTreeMap<ObjectKey, String>,
    /// The contents of those of [`SnapshotRequest::deletable`] that exist.
    pub inhabited: BTreeMap<ObjectKey, Inhabitants>,
}
