//! The report of an executed operation, object by object.

use std::time::Duration;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use addons_plan::InstallationPlan;
use addons_plan::changes::RefusalRemedy;
use addons_plan::conflicts::Conflict;
use addons_plan::readiness::Readiness;
pub use addons_plan::refusal::FailureCause;
use common::api::installation::{AddonInstallation, HelmRecord};
use common::manifest::key::ObjectKey;
use common::values::mask::SecretMask;

use super::error::EngineError;
use super::event::Event;

/// The result, with the same counts that the plan announced.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Every step that ended, in the order in which the steps ended.
    pub ended: Vec<EndedStep>,
    /// Conflicts over fields that other managers held, and how they were resolved.
    pub settled: Vec<Settled>,
    /// Whether nothing had to change, so that not even the record was written.
    pub is_unwritten: bool,
    /// Whether objects of an adoption are not ready. An adoption ends without waiting for them.
    pub is_unready: bool,
    /// Whether the server refused everything and the record has its former spec again.
    pub spec_restored: bool,
    /// The outcome of the automatic rollback; `None` if there was none.
    pub back: Option<Back>,
    /// How long it took.
    pub elapsed: Duration,
    /// The record as last written or read; `None` after an uninstallation.
    pub record: Option<AddonInstallation>,
}

/// A step that has ended. An object can have several: it is created, and then not ready.
#[derive(Clone, Debug)]
pub struct EndedStep {
    /// The object.
    pub key: ObjectKey,
    /// How the step ended.
    pub end: StepEnd,
}

/// How a step ended.
#[derive(Clone, Debug)]
pub enum StepEnd {
    /// The object was created.
    Created,
    /// An existing object that no installation owned was adopted and applied.
    Adopted,
    /// The object was changed.
    Changed,
    /// It was deleted and created again, because it could not be changed in place.
    Recreated,
    /// It was up to date.
    Unchanged,
    /// It was deleted.
    Deleted,
    /// Its deletion was accepted, but these finalizers delay it.
    Held(Vec<String>),
    /// It stays in the cluster, and the installation no longer records it.
    Forgotten,
    /// It was left in place on purpose.
    Retained,
    /// A step without an object of its own succeeded. Only failures of such steps are reported.
    Done,
    /// This many objects were written again, because their CRD drops the version in which they were stored.
    Rewritten(usize),
    /// Helm has run. Holds the release's records afterwards, or `None` if they could not be read.
    Ran(Option<Vec<HelmRecord>>),
    /// It failed: exit 6, 4 or 1, by [`Failure::cause`].
    Failed(Failure),
    /// It was not tried, for this reason.
    Skipped(String),
    /// The object was not ready in time: exit 3.
    NotReady(Readiness),
}

impl EndedStep {
    /// Returns a failed step, after sending its event to `events`.
    pub(super) fn failed(
        failure: Failure,
        remedy: Option<RefusalRemedy>,
        events: &(dyn Fn(Event) + Send + Sync),
    ) -> Self {
        events(Event::failed(&failure, remedy));
        failure.into()
    }
}

impl From<Failure> for EndedStep {
    fn from(failure: Failure) -> Self {
        Self {
            key: failure.key.clone(),
            end: StepEnd::Failed(failure),
        }
    }
}

/// Serialized as lists and counts, one field for each way in which steps end.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let list = |is| self.objects(is).collect::<Vec<_>>();
        let fields = 14 + usize::from(self.back.is_some());
        let mut view = serializer.serialize_struct("Report", fields)?;
        view.serialize_field("created", &list(|end| matches!(end, StepEnd::Created)))?;
        view.serialize_field("adopted", &list(|end| matches!(end, StepEnd::Adopted)))?;
        view.serialize_field("changed", &list(|end| matches!(end, StepEnd::Changed)))?;
        view.serialize_field("recreated", &list(|end| matches!(end, StepEnd::Recreated)))?;
        view.serialize_field("settled", &self.settled)?;
        let written = self.ended.iter().map(|step| match step.end {
            StepEnd::Rewritten(objects) => objects,
            _ => 0,
        });
        view.serialize_field("migrated", &written.sum::<usize>())?;
        view.serialize_field(
            "pruned",
            &list(|end| matches!(end, StepEnd::Deleted | StepEnd::Held(_))),
        )?;
        view.serialize_field("retained", &list(|end| matches!(end, StepEnd::Retained)))?;
        let unchanged = self.objects(|end| matches!(end, StepEnd::Unchanged));
        view.serialize_field("unchanged", &unchanged.count())?;
        view.serialize_field("failed", &self.failed().collect::<Vec<_>>())?;
        view.serialize_field("skipped", &self.skipped().collect::<Vec<_>>())?;
        view.serialize_field("notReady", &self.not_ready().collect::<Vec<_>>())?;
        view.serialize_field("specRestored", &self.spec_restored)?;
        if let Some(back) = &self.back {
            view.serialize_field("back", back)?;
        }
        view.serialize_field("elapsed", &self.elapsed)?;
        view.end()
    }
}

/// The outcome of the automatic rollback of a failed operation (`--atomic`).
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Back {
    /// The rollback was executed, with this report.
    Executed(Box<Report>),
    /// The rollback could not be planned, begun or finished, for this reason.
    Impossible(String),
}

/// A field that another manager held, and how the conflict was resolved (semantics 12.9).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settled {
    /// The object.
    pub key: ObjectKey,
    /// The field, its manager, and both values.
    #[serde(flatten)]
    pub conflict: Conflict,
    /// How it was resolved.
    #[serde(flatten)]
    pub settlement: Settlement,
}

/// How a conflict about a field was resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "settlement")]
pub enum Settlement {
    /// The field has our value.
    Taken,
    /// The other manager keeps the field.
    Left {
        /// The autoscaler that sets the replicas, such as `HorizontalPodAutoscaler web`.
        #[serde(skip_serializing_if = "Option::is_none")]
        autoscaler: Option<String>,
    },
    /// The field keeps its live value, whatever the policy says (semantics 12.7).
    Kept {
        /// The reason.
        why: String,
    },
}

impl Back {
    /// How long it took.
    pub(super) fn elapsed(&self) -> Duration {
        match self {
            Self::Executed(report) => report.elapsed,
            Self::Impossible(_) => Duration::ZERO,
        }
    }
}

impl Settled {
    /// Whether the installation's policy leaves the field to the other manager, which counts as drift. A field that an autoscaler sets does
    /// not count.
    #[must_use]
    pub fn is_yielded(&self) -> bool {
        matches!(self.settlement, Settlement::Left { autoscaler: None })
    }

    /// Whether the field keeps the value of another client.
    #[must_use]
    pub fn is_left(&self) -> bool {
        matches!(
            self.settlement,
            Settlement::Left { .. } | Settlement::Kept { .. }
        )
    }
}

/// Returns the fields that the installation's policy leaves to other managers.
pub(super) fn yielded(settled: &[Settled]) -> Vec<String> {
    let yielded = settled.iter().filter(|settled| settled.is_yielded());
    yielded
        .map(|settled| settled.conflict.field.clone())
        .collect()
}

/// The failure of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The object.
    pub key: ObjectKey,
    /// The server's message, or the reason why the object is not ready.
    pub message: String,
    /// The message for the record of the installation, without values of fields.
    #[serde(skip)]
    pub recorded: String,
    /// The category of the failure.
    pub cause: FailureCause,
    /// What the failure means for the live object.
    #[serde(skip)]
    pub fate: Fate,
}

/// What a failure means for the live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The server refused the request: nothing was written.
    Refused,
    /// The change may have been written, in part or as a whole.
    Uncertain,
    /// The object was applied, and will not become ready by itself.
    Applied,
}

impl Failure {
    /// Creates a failure from the error of a request.
    pub(super) fn of(key: ObjectKey, error: &EngineError) -> Self {
        Self {
            key,
            message: error.describe(),
            recorded: error.describe_for_record(),
            fate: if error.is_uncertain() {
                Fate::Uncertain
            } else {
                Fate::Refused
            },
            cause: error.cause(),
        }
    }

    /// Creates a failure for an object that will not become ready by itself.
    pub(super) fn of_readiness(key: ObjectKey, readiness: Readiness) -> Self {
        Self::because(key, readiness.message, FailureCause::Other, Fate::Applied)
    }

    /// Creates a failure for a reason that contains no values of fields.
    pub(super) fn because(key: ObjectKey, why: String, cause: FailureCause, fate: Fate) -> Self {
        Self {
            key,
            recorded: why.clone(),
            message: why,
            cause,
            fate,
        }
    }
}

impl Report {
    /// Adds how a step ended.
    pub(super) fn note(&mut self, key: ObjectKey, end: StepEnd) {
        self.ended.push(EndedStep { key, end });
    }

    /// Adds the retained and unchanged objects of a plan, for which the plan has no steps.
    pub(super) fn note_unwritten(&mut self, plan: &InstallationPlan) {
        let retained = plan.retained.iter().map(|key| (key, StepEnd::Retained));
        let unchanged = plan.unchanged.iter().map(|key| (key, StepEnd::Unchanged));
        for (key, end) in retained.chain(unchanged) {
            self.note(key.clone(), end);
        }
    }

    /// Returns the objects with a step whose end satisfies `is`.
    pub fn objects(&self, is: fn(&StepEnd) -> bool) -> impl Iterator<Item = &ObjectKey> {
        let ended = self.ended.iter().filter(move |step| is(&step.end));
        ended.map(|step| &step.key)
    }

    /// Objects that were created.
    pub fn created(&self) -> impl Iterator<Item = &ObjectKey> {
        self.objects(|end| matches!(end, StepEnd::Created))
    }

    /// Objects that were changed.
    pub fn changed(&self) -> impl Iterator<Item = &ObjectKey> {
        self.objects(|end| matches!(end, StepEnd::Changed))
    }

    /// Objects that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Failure> {
        self.ended.iter().filter_map(|step| match &step.end {
            StepEnd::Failed(failure) => Some(failure),
            _ => None,
        })
    }

    /// Objects that were not tried, and why.
    pub fn skipped(&self) -> impl Iterator<Item = (&ObjectKey, &str)> {
        self.ended.iter().filter_map(|step| match &step.end {
            StepEnd::Skipped(why) => Some((&step.key, why.as_str())),
            _ => None,
        })
    }

    /// Objects that were not ready in time, with the reason.
    pub fn not_ready(&self) -> impl Iterator<Item = (&ObjectKey, &Readiness)> {
        self.ended.iter().filter_map(|step| match &step.end {
            StepEnd::NotReady(readiness) => Some((&step.key, readiness)),
            _ => None,
        })
    }

    /// The records of the release after helm ran; `None` if helm did not run or they could not be read.
    pub(super) fn helm_records(&self) -> Option<&Vec<HelmRecord>> {
        self.ended.iter().find_map(|step| match &step.end {
            StepEnd::Ran(records) => records.as_ref(),
            _ => None,
        })
    }

    /// Whether no step failed, was skipped, or left its object not ready.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let is_undone = |end: &StepEnd| {
            matches!(
                end,
                StepEnd::Failed(_) | StepEnd::Skipped(_) | StepEnd::NotReady(_)
            )
        };
        !self.ended.iter().any(|step| is_undone(&step.end))
    }

    /// Whether the operation failed and the server refused all of it, so that no object has changed.
    pub(super) fn is_refused(&self) -> bool {
        !self.is_done()
            && self.ended.iter().all(|step| match &step.end {
                StepEnd::Created | StepEnd::Adopted | StepEnd::Changed | StepEnd::Recreated => {
                    false
                }
                StepEnd::Deleted | StepEnd::Held(_) | StepEnd::NotReady(_) => false,
                StepEnd::Failed(failure) => failure.fate == Fate::Refused,
                _ => true,
            })
    }

    /// Masks the content of Secrets in messages of servers and of helm. Conflicts and our own messages contain no values.
    pub(super) fn masked(mut self, mask: &SecretMask) -> Self {
        for step in &mut self.ended {
            match &mut step.end {
                StepEnd::Failed(failure) => {
                    failure.message = mask.mask_text(&failure.message);
                    failure.recorded = mask.mask_text(&failure.recorded);
                }
                StepEnd::NotReady(readiness) => {
                    readiness.message = mask.mask_text(&readiness.message)
                }
                _ => {}
            }
        }
        self
    }

    /// Adds the objects that were not ready when a wait ended. Those that cannot become ready by themselves count as failures.
    pub(super) fn take_pending(&mut self, pending: Vec<(ObjectKey, Readiness)>) {
        for (key, readiness) in pending {
            if readiness.status.is_hopeless() {
                self.ended
                    .push(Failure::of_readiness(key, readiness).into());
            } else {
                self.note(key, StepEnd::NotReady(readiness));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_written_as_lists() {
        let key = |name: &str| ObjectKey {
            kind: "ConfigMap".to_owned(),
            name: name.to_owned(),
            ..ObjectKey::default()
        };
        let mut report = Report::default();
        for (name, end) in [
            ("a", StepEnd::Created),
            ("b", StepEnd::Deleted),
            ("c", StepEnd::Held(vec!["example.test/x".to_owned()])),
            ("d", StepEnd::Rewritten(2)),
            ("d", StepEnd::Rewritten(3)),
            ("e", StepEnd::Unchanged),
            ("f", StepEnd::Forgotten),
            ("g", StepEnd::Skipped("timed out".to_owned())),
        ] {
            report.note(key(name), end);
        }
        assert!(!report.is_done());
        let written = json!({
            "created": [key("a")], "adopted": [], "changed": [], "recreated": [], "settled": [], "migrated": 5,
            "pruned": [key("b"), key("c")], "retained": [], "unchanged": 1, "failed": [],
            "skipped": [[key("g"), "timed out"]], "notReady": [], "specRestored": false,
            "elapsed": {"secs": 0, "nanos": 0},
        });
        assert_eq!(json!(report), written);
    }
}
