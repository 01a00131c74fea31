//! Tracks what an operation has done: the union inventory, updated with every answer of the server.
//!
//! The scheduler updates it, renewals of the lock write it into the record, and the final status is made from it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addons_plan::inventory::{ApplyAnswer, Inventory, InventoryItem};
use addons_plan::readiness::{Readiness, ReadinessStatus};
use addons_plan::{InstallationPlan, Target};
use common::manifest::key::ObjectKey;

use super::report::{Settled, yielded};

/// The journal of an operation; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    inventory: Arc<Mutex<Inventory>>,
    stage: Arc<Mutex<Option<OperationStage>>>,
}

/// The stage of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationStage {
    /// Its record says that it is in progress.
    Begun,
    /// It has ended as planned.
    Done,
}

impl From<Inventory> for Journal {
    fn from(inventory: Inventory) -> Self {
        Self {
            inventory: Arc::new(Mutex::new(inventory)),
            stage: Arc::default(),
        }
    }
}

impl Journal {
    /// Returns a journal in which nothing of a plan is done.
    #[must_use]
    pub fn from_plan(plan: &InstallationPlan) -> Self {
        Self::from(plan.union.clone())
    }

    /// Returns the stage of the operation; `None` if its record does not mention it.
    #[must_use]
    pub fn stage(&self) -> Option<OperationStage> {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the stage.
    pub(super) fn set_stage(&self, stage: OperationStage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Some(stage);
    }

    /// Resets the journal to another plan, which continues where the former one ended.
    pub(super) fn begin(&self, plan: &InstallationPlan) {
        self.lock().clone_from(&plan.union);
    }

    /// Records the answer to an apply ([`Inventory::record_applied`]). A Job that deletes itself gets its digest later ([`Journal::record_job_status`]).
    pub(super) fn record_applied(
        &self,
        plan: &InstallationPlan,
        key: &ObjectKey,
        answer: &ApplyAnswer,
        settled: &[Settled],
    ) {
        let Some(exact) = plan.exact.objects.get(key) else {
            return;
        };
        let mut exact = exact.clone();
        if plan.expiring.contains(key) {
            exact.object.digest.clear();
        }
        self.record_answer(key, &exact, answer, settled);
    }

    /// Records the status of a Job that deletes itself: its digest says that it has run, which a failed one has not (semantics 13.7).
    pub(super) fn record_job_status(
        &self,
        plan: &InstallationPlan,
        key: &ObjectKey,
        status: ReadinessStatus,
    ) {
        if !plan.expiring.contains(key) {
            return;
        }
        let mut inventory = self.lock();
        let item = inventory.objects.get_mut(key);
        let (Some(item), Some(exact)) = (item, plan.exact.objects.get(key)) else {
            return;
        };
        match status {
            ReadinessStatus::Current => item.object.digest.clone_from(&exact.object.digest),
            ReadinessStatus::Failed => item.object.digest.clear(),
            // A Job that is not seen to end may have run.
            ReadinessStatus::InProgress
            | ReadinessStatus::Terminating
            | ReadinessStatus::Unknown => {}
        }
    }

    /// Records the status of such Jobs after a wait, which returned the objects that are not ready.
    pub(super) fn record_wait(
        &self,
        plan: &InstallationPlan,
        targets: &[Target],
        pending: &[(ObjectKey, Readiness)],
    ) {
        let keys = targets.iter().map(|target| &target.key);
        for key in keys.filter(|key| plan.expiring.contains(*key)) {
            let found = pending.iter().find(|(one, _)| one == key);
            let status = found.map_or(ReadinessStatus::Current, |(_, readiness)| readiness.status);
            self.record_job_status(plan, key, status);
        }
    }

    /// Records the answer for an object whose digest differs from the plan's.
    pub(super) fn record_answer(
        &self,
        key: &ObjectKey,
        exact: &InventoryItem,
        answer: &ApplyAnswer,
        settled: &[Settled],
    ) {
        self.lock()
            .record_applied(key, exact, answer, yielded(settled));
    }

    /// Removes objects that were deleted or released.
    pub(super) fn remove<'a>(&self, keys: impl IntoIterator<Item = &'a ObjectKey>) {
        let mut inventory = self.lock();
        for key in keys {
            inventory.remove(key);
        }
    }

    /// Returns the current inventory.
    pub(super) fn inventory(&self) -> Inventory {
        self.lock().clone()
    }

    /// Locks the inventory. A panic cannot leave a change half done.
    fn lock(&self) -> MutexGuard<'_, Inventory> {
        self.inventory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use common::api::installation::ObjectState;
    use common::api::names::InstallationName;

    use super::*;

    /// Whoever is cut off, and whoever sees it fail, leaves a Job that runs again once it is gone.
    #[test]
    fn a_job_that_deletes_itself_has_run_once_it_was_seen_complete() {
        let key = ObjectKey {
            group: "batch".to_owned(),
            kind: "Job".to_owned(),
            namespace: Some("shop".to_owned()),
            name: "migrate".to_owned(),
        };
        let planned = InventoryItem::planned("migrate", "v1");
        let mut wanted = planned.clone();
        wanted.object.state = ObjectState::Owned;
        wanted.object.digest = "d".to_owned();
        let name = InstallationName {
            namespace: "kubectl-addons".to_owned(),
            name: "till".to_owned(),
        };
        let mut plan = InstallationPlan::nothing(name, "till");
        plan.union.objects.insert(key.clone(), planned);
        plan.exact.objects.insert(key.clone(), wanted);
        let answer = ApplyAnswer {
            created: true,
            uid: "u".to_owned(),
            generation: Some(1),
            resource_version: "1".to_owned(),
            fields: String::new(),
            only_recorded: false,
        };
        let target = Target {
            key: key.clone(),
            version: "v1".to_owned(),
            plural: "jobs".to_owned(),
        };
        let late = |status| {
            let message = String::new();
            vec![(key.clone(), Readiness { status, message })]
        };
        for (is_expiring, pending, digest) in [
            (false, None, "d"),
            (true, None, ""),
            (true, Some(late(ReadinessStatus::InProgress)), ""),
            (true, Some(late(ReadinessStatus::Failed)), ""),
            (true, Some(Vec::new()), "d"),
        ] {
            plan.expiring.clear();
            plan.expiring.extend(is_expiring.then(|| key.clone()));
            let journal = Journal::from_plan(&plan);
            journal.record_applied(&plan, &key, &answer, &[]);
            if let Some(pending) = &pending {
                journal.record_wait(&plan, std::slice::from_ref(&target), pending);
            }
            let object = journal.inventory().objects[&key].object.clone();
            assert_eq!(
                (object.digest.as_str(), object.uid.as_str()),
                (digest, "u"),
                "{pending:?}"
            );
        }
        // What counts as run is not forgotten because it cannot be seen now.
        for (status, digest) in [
            (ReadinessStatus::Unknown, "d"),
            (ReadinessStatus::Failed, ""),
        ] {
            let journal = Journal::from_plan(&plan);
            journal.record_applied(&plan, &key, &answer, &[]);
            journal.record_job_status(&plan, &key, ReadinessStatus::Current);
            journal.record_wait(&plan, std::slice::from_ref(&target), &late(status));
            let object = journal.inventory().objects[&key].object.clone();
            assert_eq!(object.digest, digest, "{status:?}");
        }
    }
}
