//! Tracks which operations of a command have begun. An object that moves between two installations must be recorded by one of them at any
//! time (semantics 13.9).

use std::collections::BTreeMap;

use tokio::sync::watch;

use addons_plan::InstallationPlan;
use addons_plan::inventory::Inventory;
use common::api::names::InstallationName;

use super::super::begin::BeginResult;
use super::super::error::EngineError;
use super::super::task::Task;

/// Whether the inventory of each operation of a command is recorded; `None` until that is known.
pub(super) struct Beginnings(watch::Sender<BTreeMap<InstallationName, Option<bool>>>);

impl Beginnings {
    /// Creates the table for operations that have not begun.
    pub(super) fn new(tasks: &[Task<'_>]) -> Self {
        let names = tasks.iter().map(|task| task.plan.installation.clone());
        Self(watch::Sender::new(names.map(|name| (name, None)).collect()))
    }

    /// Notes that an operation will not begin.
    pub(super) fn give_up(&self, plan: &InstallationPlan) {
        self.set(plan, false);
    }

    /// Notes how an operation has begun.
    pub(super) fn note(&self, plan: &InstallationPlan, begun: &Result<BeginResult, EngineError>) {
        let is_recorded = match begun {
            Ok(BeginResult::Locked(_)) => true,
            Ok(BeginResult::Nothing(stored)) => {
                let stored = Inventory::from_status(stored.status.as_ref());
                let mut wanted = plan.exact.objects.keys();
                wanted.all(|key| stored.objects.contains_key(key))
            }
            Err(_) => false,
        };
        self.set(plan, is_recorded);
    }

    fn set(&self, plan: &InstallationPlan, is_recorded: bool) {
        self.0.send_modify(|known| {
            known.insert(plan.installation.clone(), Some(is_recorded));
        });
    }

    /// Waits until the operation of an installation has begun or was given up. Returns whether its inventory is recorded. Installations without an operation count as recorded:
    /// uninstallations are executed alone, after the operations that take over their objects.
    pub(super) async fn is_recorded(&self, name: &InstallationName) -> bool {
        let mut known = self.0.subscribe();
        let is_known = |known: &BTreeMap<_, Option<bool>>| !matches!(known.get(name), Some(None));
        let known = known.wait_for(is_known).await;
        known.is_ok_and(|known| known.get(name) != Some(&Some(false)))
    }
}
