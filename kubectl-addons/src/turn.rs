//! The turn and the progress of one of several clusters: after planning, it waits until the user agreed to all plans and its wave begins.

use std::sync::{Arc, Mutex, PoisonError};

use addons_operation::Plan;
use common::api::names::InstallationName;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::exit::Exit;
use crate::prompt::ConfirmationError;

/// Decides when a cluster may be changed.
#[derive(Debug)]
pub struct ClusterTurn {
    /// The position of the cluster in the fleet.
    cluster: usize,
    yes: bool,
    planned: UnboundedSender<PlannedCluster>,
    begins: Mutex<Option<oneshot::Receiver<()>>>,
    permits: Arc<Semaphore>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

/// A cluster that was planned and waits.
#[derive(Debug)]
pub struct PlannedCluster {
    /// The position of the cluster in the fleet.
    pub cluster: usize,
    /// Whether there is anything to do.
    pub is_due: bool,
    /// The installations that the command installs, upgrades or finds up to date. The next wave waits until they are ready.
    pub installations: Vec<InstallationName>,
}

/// The progress of a cluster.
#[derive(Debug)]
pub enum ClusterState {
    /// It is being planned.
    Planning,
    /// It waits for its wave.
    Planned(PlannedCluster),
    /// Its wave has begun.
    Begun(PlannedCluster),
    /// Its command only showed what it would do.
    Shown,
    /// Its command ended.
    Ended {
        /// How it ended.
        exit: Exit,
        /// Whether there was anything to do.
        was_due: bool,
    },
    /// Its command succeeded, but it was not ready when the next wave should begin.
    NotReady,
}

impl ClusterTurn {
    /// Creates the turn of a cluster, and the sender that begins it. `permits` limits how many clusters are worked on at the same time.
    pub fn new(
        cluster: usize,
        yes: bool,
        planned: UnboundedSender<PlannedCluster>,
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
    pub async fn acquire_permit(&self) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }

    /// Gives the permit to another cluster.
    pub fn release_permit(&self) {
        self.permit
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// Waits until the user agreed to the plan and the wave of this cluster begins.
    ///
    /// # Errors
    /// The wave does not begin, or this is a second plan and the user wants to confirm it.
    pub async fn wait_for_turn(&self, plan: &Plan) -> Result<(), ConfirmationError> {
        self.wait(!plan.is_empty(), remaining_installations(plan))
            .await
    }

    /// Waits like [`ClusterTurn::wait_for_turn`] if nothing is due. The next wave waits until these installations are ready.
    ///
    /// # Errors
    /// The wave does not begin.
    pub async fn wait_unchanged(
        &self,
        installations: Vec<InstallationName>,
    ) -> Result<(), ConfirmationError> {
        self.wait(false, installations).await
    }

    async fn wait(
        &self,
        is_due: bool,
        installations: Vec<InstallationName>,
    ) -> Result<(), ConfirmationError> {
        let begins = self
            .begins
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(begins) = begins else {
            return if self.yes {
                Ok(())
            } else {
                Err(ConfirmationError::Overtaken)
            };
        };
        self.release_permit();
        // The rollout may have ended already. Then no turn begins.
        let _ = self.planned.send(PlannedCluster {
            cluster: self.cluster,
            is_due,
            installations,
        });
        begins.await.map_err(|_| ConfirmationError::No)?;
        self.acquire_permit().await;
        Ok(())
    }
}

impl ClusterState {
    /// The exit code of this state.
    pub fn exit_code(&self) -> Exit {
        match self {
            Self::Ended { exit, .. } => *exit,
            Self::NotReady => Exit::TimedOut,
            Self::Planning | Self::Shown | Self::Planned(_) | Self::Begun(_) => Exit::Done,
        }
    }
}

/// Returns the installations that exist after a plan.
fn remaining_installations(plan: &Plan) -> Vec<InstallationName> {
    let planned = plan.installations.iter().map(|planned| &planned.plan);
    let changed = planned
        .filter(|plan| !plan.verb.ends_installation())
        .map(|plan| &plan.installation);
    let unchanged = plan.up_to_date.iter().map(|resolved| &resolved.name);
    changed.chain(unchanged).cloned().collect()
}
