//! The steps of an operation after its objects are applied and ready: requests to the API server, or runs of helm. They are grouped in
//! stages; a stage begins only if everything before it succeeded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use common::api::installation::{FormerObject, FormerRecord, HelmRelease};
use common::manifest::key::ObjectKey;

use super::migration::Migration;
use super::planner::namespace_key;
use super::release_records::ReleaseRecords;
use super::teardown::TeardownTurn;
use super::{Deletion, InstallationPlan, Moving, Target};

/// One step after the objects are applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClosingStep {
    /// Runs helm to install or remove a release. The plan then applies no objects itself.
    Run {
        /// The release.
        release: HelmRelease,
        /// Helm's Secrets of the release when the plan was made. The step refuses to run if they have changed.
        records: ReleaseRecords,
    },
    /// Writes every object of a CRD again, and removes the versions in which they were stored from the CRD
    /// ([`InstallationPlan::check_migrations`]).
    Rewrite(Migration),
    /// Leaves the object to another installation of the command that takes it over. It sends no request.
    HandOver(Moving),
    /// Deletes the object, on condition that it still has its uid.
    Delete {
        /// When it is deleted, relative to the other deletions.
        turn: TeardownTurn,
        /// The object.
        deletion: Deletion,
    },
    /// Removes our fields from the object, which existed before the installation.
    Release(Target),
    /// Writes the annotation of a namespace by which another tool knows the add-on.
    Annotate(AnnotationChange),
    /// Removes our marks and field manager from the object, on condition that it still has its uid.
    GiveBack(Deletion),
    /// Hides the records of another tool from that tool, because we own everything they name. Without objects, the step
    /// changes nothing in the cluster.
    SetAside(HiddenRecords),
    /// Makes the records of another tool visible to it again.
    Restore(FormerRecord),
    /// Deletes the records of another tool that are set aside.
    Discard(FormerRecord),
}

/// A change of the annotation of a namespace in which another tool records what is installed, and the nodes that the tool is to replace.
/// It is written last, so that the tool still finds the former state after a failure (semantics 11.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnnotationChange {
    /// The namespace that carries the annotation.
    pub namespace: String,
    /// Key of the annotation.
    pub key: String,
    /// Its value when the plan was made; `None` if it did not exist. The step refuses to replace another value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Its value after the operation; `None` removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Nodes to mark before the annotation is written, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Key of the empty annotation that marks a node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_mark: String,
}

impl AnnotationChange {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.before == self.after && self.nodes.is_empty()
    }
}

/// Records of another tool, and what hides them from it: their objects lose the labels by which the tool finds them (semantics 12.12).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HiddenRecords {
    /// The records, the newest last.
    pub record: FormerRecord,
    /// How each of their objects is hidden, in the same order. Objects that are hidden already are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<HiddenObject>,
    /// The label selector by which the tool finds its records. The step refuses to begin if it finds one that is not listed here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// An object that is hidden from the tool that wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HiddenObject {
    /// The object.
    pub object: FormerObject,
    /// The labels by which the tool finds it, which an annotation keeps. An object that has other ones meanwhile is left alone.
    pub labels: BTreeMap<String, String>,
    /// The key of its data that is renamed, because the tool also finds the object by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_key: Option<String>,
}

impl HiddenRecords {
    /// Returns records of which nothing is left to hide.
    #[must_use]
    pub fn hidden_already(record: FormerRecord) -> Self {
        Self {
            record,
            objects: Vec::new(),
            selector: None,
        }
    }
}

/// The API group of the key under which a release of helm is reported.
pub const HELM_GROUP: &str = "helm.sh";

impl ClosingStep {
    /// Returns the key of the object under which the step is reported.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Run { release, .. } => ObjectKey {
                group: HELM_GROUP.to_owned(),
                kind: "Release".to_owned(),
                namespace: Some(release.namespace.clone()),
                name: release.name.clone(),
            },
            Self::Rewrite(migration) => migration.definition.clone(),
            Self::HandOver(moving) => moving.key.clone(),
            Self::Delete { deletion, .. } | Self::GiveBack(deletion) => deletion.target.key.clone(),
            Self::Release(target) => target.key.clone(),
            Self::Annotate(change) => namespace_key(&change.namespace),
            Self::SetAside(HiddenRecords { record, .. })
            | Self::Restore(record)
            | Self::Discard(record) => {
                let newest = record.objects.last();
                let newest = newest.map(|object| record_key(record, object));
                newest.unwrap_or_default()
            }
        }
    }

    /// Whether the step has nothing to write.
    #[must_use]
    pub fn is_void(&self) -> bool {
        match self {
            Self::Annotate(change) => change.is_current(),
            Self::SetAside(HiddenRecords { record, .. })
            | Self::Restore(record)
            | Self::Discard(record) => record.objects.is_empty(),
            _ => false,
        }
    }

    /// Returns the stage. Records of other tools come last: after a failure, these tools still find the former state.
    fn stage(&self) -> (u8, Option<TeardownTurn>) {
        match self {
            Self::Run { .. } => (0, None),
            Self::Rewrite(_) => (1, None),
            Self::HandOver(_) => (2, None),
            Self::Delete { turn, .. } => (3, Some(*turn)),
            Self::Release(_) => (4, None),
            Self::Annotate(_) => (5, None),
            Self::GiveBack(_) => (6, None),
            Self::SetAside(_) | Self::Restore(_) | Self::Discard(_) => (7, None),
        }
    }
}

/// Returns the key of an object that stores a record of another tool.
#[must_use]
pub fn record_key(record: &FormerRecord, object: &FormerObject) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: object.kind.clone(),
        namespace: Some(record.namespace.clone()),
        name: object.name.clone(),
    }
}

impl InstallationPlan {
    /// Adds closing steps, and sorts all of them by stage.
    pub fn close(&mut self, steps: impl IntoIterator<Item = ClosingStep>) {
        self.closing.extend(steps);
        self.closing.sort_by_key(ClosingStep::stage);
    }

    /// Returns the closing steps by stage, in order. Steps of one stage are independent of each other.
    pub fn stages(&self) -> impl Iterator<Item = &[ClosingStep]> {
        self.closing.chunk_by(|a, b| a.stage() == b.stage())
    }

    /// Returns the deletions, without objects that must be deleted before a step ([`super::holder`]).
    pub fn deletions(&self) -> impl Iterator<Item = &Deletion> {
        self.closing.iter().filter_map(|step| match step {
            ClosingStep::Delete { deletion, .. } => Some(deletion),
            _ => None,
        })
    }

    /// Returns the objects that existed before the installation and from which our fields are removed.
    pub fn released(&self) -> impl Iterator<Item = &ObjectKey> {
        self.closing.iter().filter_map(|step| match step {
            ClosingStep::Release(target) => Some(&target.key),
            _ => None,
        })
    }

    /// Returns the migrations of CRDs that drop a version in which objects may be stored.
    pub fn migrations(&self) -> impl Iterator<Item = &Migration> {
        self.closing.iter().filter_map(|step| match step {
            ClosingStep::Rewrite(migration) => Some(migration),
            _ => None,
        })
    }

    /// Returns the records of other tools that are set aside, restored or deleted.
    pub fn former(&self) -> impl Iterator<Item = &FormerRecord> {
        self.closing.iter().filter_map(|step| match step {
            ClosingStep::SetAside(HiddenRecords { record, .. })
            | ClosingStep::Restore(record)
            | ClosingStep::Discard(record) => Some(record),
            _ => None,
        })
    }

    /// Returns the annotation that the operation writes for another tool.
    #[must_use]
    pub fn annotation(&self) -> Option<&AnnotationChange> {
        self.closing.iter().find_map(|step| match step {
            ClosingStep::Annotate(change) => Some(change),
            _ => None,
        })
    }

    /// Returns the release that helm itself installs or removes, and its Secrets.
    #[must_use]
    pub fn helm_release(&self) -> Option<(&HelmRelease, &ReleaseRecords)> {
        self.closing.iter().find_map(|step| match step {
            ClosingStep::Run { release, records } => Some((release, records)),
            _ => None,
        })
    }
}
