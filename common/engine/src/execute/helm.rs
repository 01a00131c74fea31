//! The release that helm itself installs or removes, as one step of an operation.

use addons_plan::readiness::{Readiness, ReadinessStatus};
use addons_plan::release_records::ReleaseRecords;
use addons_plan::{Action, Verb};
use common::api::installation::HelmRelease;
use common::manifest::key::ObjectKey;

use super::super::error::EngineError;
use super::super::event::Event;
use super::super::release;
use super::super::report::{Failure, FailureCause, Fate, Report};
use super::super::task::OutsideFailure;
use super::operation::RunningOperation;

impl RunningOperation<'_> {
    /// Leaves the plan's release to helm.
    pub(super) async fn leave_to_helm(&self, report: &mut Report) {
        let plan = self.task.plan;
        let (Some(release), Some(outside)) = (&plan.helm_release, self.task.outside) else {
            return;
        };
        if !report.is_done() {
            return;
        }
        let key = ObjectKey {
            group: "helm.sh".to_owned(),
            kind: "Release".to_owned(),
            namespace: Some(release.namespace.clone()),
            name: release.name.clone(),
        };
        let helm = |status, message: &str| Event::Waiting {
            key: key.clone(),
            readiness: Readiness {
                status,
                message: message.to_owned(),
            },
        };
        let planned = plan.release_records.clone().unwrap_or_default();
        if let Err(failure) = self.prepare(release, &key, &planned).await {
            self.fail(report, failure);
            return;
        }
        (self.events)(helm(ReadinessStatus::InProgress, "helm is at work"));
        let worked = outside().await;
        // Where they cannot be read, what is recorded is not true any more, and a person is asked.
        let records = release::records(self.cluster, release, &planned.known).await;
        report.helm_records = records.ok();
        if let Err(OutsideFailure { message, cause }) = worked {
            self.fail(
                report,
                Failure {
                    fate: Fate::Uncertain,
                    key,
                    recorded: message.clone(),
                    message,
                    cause,
                },
            );
            return;
        }
        let action = match plan.verb {
            Verb::Uninstall | Verb::Release => {
                (self.events)(Event::Pruned { key: key.clone() });
                report.pruned.push(key);
                return;
            }
            Verb::Install => Action::Create,
            Verb::Upgrade | Verb::Rollback | Verb::Adopt => Action::Update,
        };
        (self.events)(Event::Applied {
            key: key.clone(),
            action,
        });
        (self.events)(helm(ReadinessStatus::Current, "installed by helm"));
        let keys = match action {
            Action::Create => &mut report.created,
            _ => &mut report.changed,
        };
        keys.push(key);
    }

    /// Makes sure that helm finds the records that the plan was made with, and no others.
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
            let message = "its Secrets were changed after the plan was made".to_owned();
            return Err(Failure {
                fate: Fate::Refused,
                key: key.clone(),
                recorded: message.clone(),
                message,
                cause: FailureCause::Conflict,
            });
        }
        let forgotten = release::forget(self.cluster, release, &planned.left).await;
        forgotten.map_err(|error| failed(&error))
    }
}
