//! Creates the target namespace of an installation before its objects, and removes it after them.

use addons_plan::Action;

use super::super::error::EngineError;
use super::super::event::Event;
use super::super::lock::Lock;
use super::super::namespace;
use super::super::report::{Failure, Report};
use super::operation::RunningOperation;

impl RunningOperation<'_> {
    /// Creates the target namespace if it is missing. Returns its uid if the installation created it.
    pub(super) async fn create_namespace(&self) -> Result<Option<String>, Failure> {
        let plan = self.task.plan;
        let Some(name) = &plan.create_namespace else {
            return Ok(None);
        };
        let (installation, deadline) = (&plan.installation, self.deadline);
        let created = namespace::create(self.cluster, name, installation, deadline, self.events)
            .await
            .map_err(|error| Failure::of(namespace::key(name), &error))?;
        if created.is_some() {
            (self.events)(Event::Applied {
                key: namespace::key(name),
                action: Action::Create,
            });
        }
        Ok(created)
    }

    /// Removes the target namespace if the installation created it, or reports why it stays.
    pub(super) async fn remove_namespace(
        &self,
        lock: &mut Lock,
        report: &mut Report,
    ) -> Result<(), EngineError> {
        let created = lock.record.status.as_ref();
        let Some(created) = created.and_then(|status| status.created_namespace.clone()) else {
            return Ok(());
        };
        if self.options.leave_namespaces.contains(&created.name) {
            return Ok(());
        }
        let record = lock.record.clone();
        let key = namespace::key(&created.name);
        let deletions = self.task.plan.deletions();
        let deleted = deletions.map(|deletion| deletion.uid.clone()).collect();
        let deadline = self.deadline;
        let removing = namespace::remove(self.cluster, &created, &record, deleted, deadline);
        let removal = lock
            .run_renewing(self.cluster, self.task.journal, removing)
            .await?;
        namespace::report_removal(key, removal, report, self.events)
    }
}
