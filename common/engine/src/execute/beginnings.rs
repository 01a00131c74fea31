//! Which operations of a command have begun: what moves between two installations is recorded by one of them at any time (semantics 13).

use std::collections::BTreeMap;

use tokio::sync::watch;

use addons_plan::InstallationPlan;
use addons_plan::inventory::Inventory;
use common::api::names::InstallationName;

use super::super::begin::BeginResult;
use super::super::error::EngineError;
use super::super::task::Task;

/// The operations of a command; of each, whether its inventory is recorded, once that is known.
pub(super) struct Beginnings(watch::Sender<BTreeMap<InstallationName, Option<bool>>>);

impl Beginnings {
    /// None has begun.
    pub(super) fn new(tasks: &[Task<'_>]) -> Self {
        let names = tasks.iter().map(|task| task.plan.installation.clone());
        Self(watch::Sender::new(names.map(|name| (name, None)).collect()))
    }

    /// An operation will not begin.
    pub(super) fn give_up(&self, plan: &InstallationPlan) {
        self.set(plan, false);
    }

    /// How an operation has begun.
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

    /// Waits until it is known. Uninstallations are executed alone, after everything that takes something over from them.
    pub(super) async fn is_recorded(&self, name: &InstallationName) -> bool {
        let mut known = self.0.subscribe();
        let is_known = |known: &BTreeMap<_, Option<bool>>| !matches!(known.get(name), Some(None));
        let known = known.wait_for(is_known).await;
        known.is_ok_and(|known| known.get(name) != Some(&Some(false)))
    }
}
