//! The turn of one of several clusters: after planning, it waits until the user agreed to all plans and its wave begins.

use std::sync::{Arc, Mutex, PoisonError};

use addons_operation::Plan;
use common::api::names::InstallationName;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::change::Declined;

/// Decides when a cluster may be changed.
#[derive(Debug)]
pub struct Turn {
    /// The position of the cluster in the fleet.
    cluster: usize,
    yes: bool,
    planned: UnboundedSender<Planned>,
    begins: Mutex<Option<oneshot::Receiver<()>>>,
    permits: Arc<Semaphore>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

/// A cluster that was planned and waits.
#[derive(Debug)]
pub struct Planned {
    /// The position of the cluster in the fleet.
    pub cluster: usize,
    /// Whether there is anything to do.
    pub is_due: bool,
    /// The installations that the command installs, upgrades or finds up to date. The next wave waits until they are ready.
    pub installations: Vec<InstallationName>,
}

impl Turn {
    /// Creates the turn of a cluster, and the sender that begins it. `permits` limits how many clusters are worked on at the same time.
    pub fn new(
        cluster: usize,
        yes: bool,
        planned: UnboundedSender<Planned>,
        permits: Arc<Semaphore>,
    ) -> (Self, oneshot::Sender<()>) {
        let (begin, begins) = oneshot::channel();
        let turn = Self {
            cluster,
            yes,
            planned,
            begins: Mutex::new(Some(begins)),
            permits,
            permit: Mutex::default(),
        };
        (turn, begin)
    }

    /// Waits for a permit, which limits how many clusters are worked on at the same time.
    pub async fn work(&self) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }

    /// Gives the permit to another cluster.
    pub fn rest(&self) {
        self.permit
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// Waits until the user agreed to the plan and the wave of this cluster begins.
    ///
    /// # Errors
    /// The wave does not begin, or this is a second plan and the user wants to confirm it.
    pub async fn take(&self, plan: &Plan) -> Result<(), Declined> {
        self.wait(!plan.is_empty(), stay(plan)).await
    }

    /// Waits like [`Turn::take`] if nothing is due. The next wave waits until these installations are ready.
    ///
    /// # Errors
    /// The wave does not begin.
    pub async fn pass(&self, installations: Vec<InstallationName>) -> Result<(), Declined> {
        self.wait(false, installations).await
    }

    async fn wait(
        &self,
        is_due: bool,
        installations: Vec<InstallationName>,
    ) -> Result<(), Declined> {
        let begins = self
            .begins
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(begins) = begins else {
            return if self.yes {
                Ok(())
            } else {
                Err(Declined::Overtaken)
            };
        };
        self.rest();
        // The rollout may have ended already. Then no turn begins.
        let _ = self.planned.send(Planned {
            cluster: self.cluster,
            is_due,
            installations,
        });
        begins.await.map_err(|_| Declined::No)?;
        self.work().await;
        Ok(())
    }
}

/// Returns the installations that exist after a plan.
fn stay(plan: &Plan) -> Vec<InstallationName> {
    let planned = plan.installations.iter().map(|planned| &planned.plan);
    let changed = planned
        .filter(|plan| !plan.verb.ends())
        .map(|plan| &plan.installation);
    let unchanged = plan.up_to_date.iter().map(|resolved| &resolved.name);
    changed.chain(unchanged).cloned().collect()
}
