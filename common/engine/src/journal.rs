//! What an operation has done so far: the union inventory with every answer of the server written into it.
//!
//! The scheduler writes it, the renewals of the lock carry it into the record, and the last status is made of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use common::manifest::key::ObjectKey;
use common::plan::InstallationPlan;
use common::plan::inventory::{Answer, Inventory, Item};

use super::report::{Settled, yielded};

/// One of an operation; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Journal(Arc<Mutex<Inventory>>);

impl From<Inventory> for Journal {
    fn from(inventory: Inventory) -> Self {
        Self(Arc::new(Mutex::new(inventory)))
    }
}

impl Journal {
    /// Nothing of a plan is done.
    #[must_use]
    pub fn of(plan: &InstallationPlan) -> Self {
        Self::from(plan.union.clone())
    }

    /// From now on it is that of this plan, which continues where another one ended.
    pub(super) fn begin(&self, plan: &InstallationPlan) {
        self.lock().clone_from(&plan.union);
    }

    /// What is known of one object.
    pub(super) fn put(&self, key: ObjectKey, item: Item) {
        self.lock().objects.insert(key, item);
    }

    /// Writes the answer to an apply ([`Inventory::applied`]).
    pub(super) fn applied(
        &self,
        plan: &InstallationPlan,
        key: &ObjectKey,
        answer: &Answer,
        settled: &[Settled],
    ) {
        if let Some(exact) = plan.exact.objects.get(key) {
            self.write(key, exact, answer, settled);
        }
    }

    /// The same for an object that has another digest than the plan says.
    pub(super) fn write(
        &self,
        key: &ObjectKey,
        exact: &Item,
        answer: &Answer,
        settled: &[Settled],
    ) {
        self.lock().applied(key, exact, answer, yielded(settled));
    }

    /// Forgets objects that were deleted or released.
    pub(super) fn remove<'a>(&self, keys: impl IntoIterator<Item = &'a ObjectKey>) {
        let mut inventory = self.lock();
        for key in keys {
            inventory.remove(key);
        }
    }

    /// As it is now.
    pub(super) fn inventory(&self) -> Inventory {
        self.lock().clone()
    }

    /// A panic in between leaves no half of a change.
    fn lock(&self) -> MutexGuard<'_, Inventory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
