//! The end of an adoption, and of what was adopted: the records of other tools are the last step of an operation, for after a failure
//! their tools find what was there before.

use futures::{StreamExt as _, stream};

use addons_plan::{Deletion, Verb};
use common::api::installation::FormerRecord;
use common::manifest::key::ObjectKey;

use super::super::apply::giving::Giving;
use super::super::former;
use super::super::report::{Failure, Report};
use super::operation::RunningOperation;

impl RunningOperation<'_> {
    /// Takes our marks and field manager from the objects of a plan, until one is refused.
    pub(super) async fn give_back(&self, report: &mut Report) {
        let plan = self.task.plan;
        let objects = plan.given_back.iter();
        let keys = objects.map(|object| object.target.key.clone());
        if plan.given_back.is_empty() || self.skips(report, keys) {
            return;
        }
        let giving = Giving::of(plan);
        let given: Vec<_> = stream::iter(&plan.given_back)
            .map(async |object| (object, giving.give(self.cluster, object).await))
            .buffer_unordered(self.cluster.concurrency())
            .collect()
            .await;
        for (Deletion { target, .. }, result) in given {
            match result {
                Ok(()) => report.retained.push(target.key.clone()),
                Err(error) => self.fail(report, Failure::of(target.key.clone(), &error)),
            }
        }
    }

    /// Sets aside what the plan says; with everything that they name, records that were set aside go.
    pub(super) async fn end_former_records(&self, report: &mut Report) {
        let plan = self.task.plan;
        // What is only noted has no objects, and nothing is done with it.
        let records = plan.former.iter();
        let records = records.filter(|record| !record.objects.is_empty());
        if self.skips(report, records.map(key)) {
            return;
        }
        let name = &plan.installation;
        for record in &plan.former {
            let done = match plan.verb {
                Verb::Uninstall => former::delete_all(self.cluster, name, record).await,
                Verb::Release => former::restore(self.cluster, name, record).await,
                Verb::Install | Verb::Upgrade | Verb::Rollback | Verb::Adopt => {
                    former::set_aside(self.cluster, name, record).await
                }
            };
            if let Err(error) = done {
                self.fail(report, Failure::of(key(record), &error));
                return;
            }
        }
    }
}

/// The newest object of a record, by which a failure is reported.
fn key(record: &FormerRecord) -> ObjectKey {
    let newest = record.objects.last();
    newest
        .map(|object| former::key(record, object))
        .unwrap_or_default()
}
