//! The release that helm itself installs or removes, as one step of an operation.

use common::manifest::key::ObjectKey;
use common::plan::{Action, Verb};
use common::readiness::{Readiness, Status};

use super::super::event::Event;
use super::super::report::{Failure, Fate, Report};
use super::super::task::OutsideFailure;
use super::operation::Operation;

impl Operation<'_> {
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
        (self.events)(helm(Status::InProgress, "helm is at work"));
        if let Err(OutsideFailure { message, cause }) = outside().await {
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
        (self.events)(helm(Status::Current, "installed by helm"));
        let keys = match action {
            Action::Create => &mut report.created,
            _ => &mut report.changed,
        };
        keys.push(key);
    }
}
