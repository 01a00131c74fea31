//! What an operation does after its objects are applied and ready: requests to the API server, or a child program. They come in stages;
//! a stage begins only where everything before it succeeded.

use serde::{Deserialize, Serialize};

use common::api::installation::{FormerObject, FormerRecord, HelmRelease};
use common::manifest::key::ObjectKey;

use super::kops::KopsRecord;
use super::migration::Migration;
use super::planner::namespace_key;
use super::release_records::ReleaseRecords;
use super::teardown::TeardownTurn;
use super::{Deletion, InstallationPlan, Moving, Target};

/// One step of a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClosingStep {
    /// Helm itself installs or removes a release: then there are no objects.
    Run {
        /// The release.
        release: HelmRelease,
        /// The Secrets in which helm keeps it, as the plan was made with them: it runs from no others.
        records: ReleaseRecords,
    },
    /// Every object of a definition is written again, and the versions that they were stored in leave it
    /// ([`InstallationPlan::check_migrations`]).
    Rewrite(Migration),
    /// Another installation of the command takes the object over: no request.
    HandOver(Moving),
    /// The object is deleted, under its uid.
    Delete {
        /// When.
        turn: TeardownTurn,
        /// The object.
        deletion: Deletion,
    },
    /// Our fields leave the object, which was there before us.
    Release(Target),
    /// What kops' own tool reads is written, where it knows the add-on.
    Annotate(KopsRecord),
    /// Our marks and field manager leave the object, under its uid.
    GiveBack(Deletion),
    /// The records of another tool are hidden from it, for everything that they name is ours then. Without objects, they are only noted.
    SetAside(FormerRecord),
    /// They are as they were again.
    Restore(FormerRecord),
    /// They are deleted while they are set aside.
    Discard(FormerRecord),
}

impl ClosingStep {
    /// The object that the step is reported by.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Run { release, .. } => ObjectKey {
                group: "helm.sh".to_owned(),
                kind: "Release".to_owned(),
                namespace: Some(release.namespace.clone()),
                name: release.name.clone(),
            },
            Self::Rewrite(migration) => migration.definition.clone(),
            Self::HandOver(moving) => moving.key.clone(),
            Self::Delete { deletion, .. } | Self::GiveBack(deletion) => deletion.target.key.clone(),
            Self::Release(target) => target.key.clone(),
            Self::Annotate(record) => namespace_key(&record.namespace),
            Self::SetAside(record) | Self::Restore(record) | Self::Discard(record) => {
                let newest = record.objects.last();
                let newest = newest.map(|object| record_key(record, object));
                newest.unwrap_or_default()
            }
        }
    }

    /// Whether everything is as the step wants it: then it only looks, if at all.
    #[must_use]
    pub fn is_void(&self) -> bool {
        match self {
            Self::Annotate(record) => record.is_current(),
            Self::SetAside(record) | Self::Restore(record) | Self::Discard(record) => {
                record.objects.is_empty()
            }
            _ => false,
        }
    }

    /// Its stage. What other tools have recorded comes last: after a failure, they find what was there before.
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

/// The key of an object of a record.
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
    /// Adds closing steps, each to its stage.
    pub fn close(&mut self, steps: impl IntoIterator<Item = ClosingStep>) {
        self.closing.extend(steps);
        self.closing.sort_by_key(ClosingStep::stage);
    }

    /// The closing steps, stage after stage; those of one stage are independent of each other.
    pub fn stages(&self) -> impl Iterator<Item = &[ClosingStep]> {
        self.closing.chunk_by(|a, b| a.stage() == b.stage())
    }

    /// What is deleted, but for what has to go before a step ([`super::holder`]).
    pub fn deletions(&self) -> impl Iterator<Item = &Deletion> {
        self.closing.iter().filter_map(|step| match step {
            ClosingStep::Delete { deletion, .. } => Some(deletion),
            _ => None,
        })
    }

    /// Objects that were there before us, and that our fields leave.
    pub fn released(&self) -> impl Iterator<Item = &ObjectKey> {
        self.closing.iter().filter_map(|step| match step {
            ClosingStep::Release(target) => Some(&target.key),
            _ => None,
        })
    }

    /// Definitions that drop a version in which objects may be stored.
    pub fn migrations(&self) -> impl Iterator<Item = &Migration> {
        self.closing.iter().filter_map(|step| match step {
            ClosingStep::Rewrite(migration) => Some(migration),
            _ => None,
        })
    }

    /// Records of other tools that are set aside, restored or deleted.
    pub fn former(&self) -> impl Iterator<Item = &FormerRecord> {
        self.closing.iter().filter_map(|step| match step {
            ClosingStep::SetAside(record)
            | ClosingStep::Restore(record)
            | ClosingStep::Discard(record) => Some(record),
            _ => None,
        })
    }

    /// What is left behind for kops' own tool.
    #[must_use]
    pub fn kops(&self) -> Option<&KopsRecord> {
        self.closing.iter().find_map(|step| match step {
            ClosingStep::Annotate(record) => Some(record),
            _ => None,
        })
    }

    /// The release that helm itself installs or removes, and its Secrets.
    #[must_use]
    pub fn helm_release(&self) -> Option<(&HelmRelease, &ReleaseRecords)> {
        self.closing.iter().find_map(|step| match step {
            ClosingStep::Run { release, records } => Some((release, records)),
            _ => None,
        })
    }
}
