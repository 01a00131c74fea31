//! Lets helm install or remove a release, as one step of an operation.

use addons_plan::readiness::{Readiness, ReadinessStatus};
use addons_plan::release_records::ReleaseRecords;
use addons_plan::{Action, Verb};
use common::api::installation::HelmRelease;
use common::manifest::key::ObjectKey;

use super::super::error::EngineError;
use super::super::event::Event;
use super::super::release;
use super::super::report::{EndedStep, Failure, FailureCause, Fate, StepEnd};
use super::super::task::OutsideFailure;
use super::operation::RunningOperation;

impl RunningOperation<'_> {
    /// Runs helm on the plan's release, and reads the records that helm left.
    pub(super) async fn run_helm(
        &self,
        release: &HelmRelease,
        planned: &ReleaseRecords,
        key: ObjectKey,
    ) -> Vec<EndedStep> {
        let plan = self.task.plan;
        let Some(outside) = self.task.outside else {
            return Vec::new();
        };
        let helm = |status, message: &str| Event::Waiting {
            key: key.clone(),
            readiness: Readiness {
                status,
                message: message.to_owned(),
            },
        };
        if let Err(failure) = self.prepare(release, &key, planned).await {
            return vec![EndedStep::failed(failure, None, self.events)];
        }
        (self.events)(helm(ReadinessStatus::InProgress, "helm is at work"));
        let worked = outside().await;
        // If they cannot be read, the recorded ones are out of date, and the next run needs a confirmation.
        let records = release::records(self.cluster, release, &planned.known).await;
        let ran = EndedStep {
            key: key.clone(),
            end: StepEnd::Ran(records.ok()),
        };
        if let Err(OutsideFailure { message, cause }) = worked {
            let failure = Failure::because(key, message, cause, Fate::Uncertain);
            return vec![ran, EndedStep::failed(failure, None, self.events)];
        }
        let (action, end) = match plan.verb {
            Verb::Uninstall | Verb::Release => {
                (self.events)(Event::Pruned { key: key.clone() });
                return vec![
                    ran,
                    EndedStep {
                        key,
                        end: StepEnd::Deleted,
                    },
                ];
            }
            Verb::Install => (Action::Create, StepEnd::Created),
            Verb::Upgrade | Verb::Rollback | Verb::Adopt => (Action::Update, StepEnd::Changed),
        };
        (self.events)(Event::Applied {
            key: key.clone(),
            action,
        });
        (self.events)(helm(ReadinessStatus::Current, "installed by helm"));
        vec![ran, EndedStep { key, end }]
    }

    /// Makes sure that helm finds exactly the records that the plan was made with (semantics 13.8).
    async fn prepare(
        &self,
        release: &HelmRelease,
        key: &ObjectKey,
        planned: &ReleaseRecords,
    ) -> Result<(), Failure> {
        let failed = |error: &EngineError| Failure {
            fate: Fate::Refused,
            ..Failure::of(key.clone(), error)
        };
        let is_as_planned = release::is_as_planned(self.cluster, release, planned).await;
        if !is_as_planned.map_err(|error| failed(&error))? {
            let why = "its Secrets were changed after the plan was made".to_owned();
            return Err(Failure::because(
                key.clone(),
                why,
                FailureCause::Conflict,
                Fate::Refused,
            ));
        }
        let forgotten = release::forget(self.cluster, release, &planned.left).await;
        forgotten.map_err(|error| failed(&error))
    }
}
