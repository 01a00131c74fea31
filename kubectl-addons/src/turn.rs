//! The turn of a command that runs beside others: after planning, it waits until the user agreed to all plans and its caller lets it
//! begin. A command without a turn asks the user itself.

use std::sync::{Arc, Mutex, PoisonError};

use addons_operation::Plan;
use common::api::names::InstallationName;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::prompt::ConfirmationError;

/// Decides when a command may begin to change something.
#[derive(Debug)]
pub struct Turn {
    /// The number that the caller gave the command.
    command: usize,
    yes: bool,
    planned: UnboundedSender<PlannedCommand>,
    begins: Mutex<Option<oneshot::Receiver<()>>>,
    permits: Arc<Semaphore>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

/// A command that has planned and waits.
#[derive(Debug)]
pub struct PlannedCommand {
    /// The number that the caller gave the command.
    pub command: usize,
    /// Whether there is anything to do.
    pub is_due: bool,
    /// The installations that the command installs, upgrades or finds up to date. Later commands may have to wait until they are ready.
    pub installations: Vec<InstallationName>,
}

impl Turn {
    /// Creates the turn of a command, and the sender that begins it. `permits` limits how many commands run at the same time.
    pub fn new(
        command: usize,
        yes: bool,
        planned: UnboundedSender<PlannedCommand>,
        permits: Arc<Semaphore>,
    ) -> (Self, oneshot::Sender<()>) {
        let (begin, begins) = oneshot::channel();
        let turn = Self {
            command,
            yes,
            planned,
            begins: Mutex::new(Some(begins)),
            permits,
            permit: Mutex::default(),
        };
        (turn, begin)
    }

    /// Waits for a permit, which limits how many commands run at the same time.
    pub async fn acquire_permit(&self) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }

    /// Gives the permit to another command.
    pub fn release_permit(&self) {
        self.permit
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// Waits until the user agreed to the plan and the caller lets the command begin.
    ///
    /// # Errors
    /// The caller does not let it begin, or this is a second plan and the user wants to confirm it.
    pub async fn wait_for_turn(&self, plan: &Plan) -> Result<(), ConfirmationError> {
        self.wait(!plan.is_empty(), remaining_installations(plan))
            .await
    }

    /// Waits like [`Turn::wait_for_turn`] if nothing is due. Later commands may have to wait until these installations are ready.
    ///
    /// # Errors
    /// The caller does not let it begin.
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
        // The caller may have ended already. Then no turn begins.
        let _ = self.planned.send(PlannedCommand {
            command: self.command,
            is_due,
            installations,
        });
        begins.await.map_err(|_| ConfirmationError::No)?;
        self.acquire_permit().await;
        Ok(())
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
