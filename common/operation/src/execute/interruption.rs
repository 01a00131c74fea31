//! Ends an operation early. A running helm first marks its release as failed, sent requests are answered, and the locks are released, so
//! that the next run continues at once.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use addons_engine::OperationStage;
use common::api::names::InstallationName;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, RwLockWriteGuard, watch};
use tokio::time::timeout;

/// The time limit for answers to requests that were sent before an interruption.
const DRAINING: Duration = Duration::from_secs(2);

/// The operation was ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted: the progress is recorded, and the lock is released")]
pub struct Interrupted;

/// Interrupts the work of a command, and all work that begins later. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Interruption {
    asked: Arc<watch::Sender<bool>>,
    forced: watch::Sender<bool>,
    helm: Arc<RwLock<()>>,
    stages: Arc<Mutex<BTreeMap<InstallationName, OperationStage>>>,
    /// Whether the work waits for an object to become ready or to be deleted.
    waits: watch::Sender<bool>,
    is_superseded: Arc<AtomicBool>,
    /// The parts, which are interrupted together with the whole.
    parts: Arc<Mutex<Vec<Weak<watch::Sender<bool>>>>>,
}

impl Interruption {
    /// Interrupts the work as soon as no helm runs, and lets no other helm begin. A running helm is notified, and has limited time to end.
    pub fn interrupt(&self) {
        self.asked.send_replace(true);
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        for part in parts.iter().filter_map(Weak::upgrade) {
            part.send_replace(true);
        }
    }

    /// Returns the interruption of one installation: it is interrupted with the whole, and can be superseded separately.
    #[must_use]
    pub fn part(&self) -> Self {
        let part = Self {
            forced: self.forced.clone(),
            stages: Arc::clone(&self.stages),
            ..Self::default()
        };
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.retain(|part| part.strong_count() > 0);
        parts.push(Arc::downgrade(&part.asked));
        // This is under the lock, so that the whole is interrupted either before or after it.
        part.asked.send_replace(self.is_interrupted());
        drop(parts);
        part
    }

    /// Ends work that only waits, because a newer state is wanted: no request is held back for it.
    pub fn supersede(&self) {
        self.is_superseded.store(true, Ordering::Relaxed);
        self.asked.send_replace(true);
    }

    /// Whether the work was ended because of a newer state.
    pub(crate) fn is_superseded(&self) -> bool {
        self.is_superseded.load(Ordering::Relaxed)
    }

    /// Returns once the work waits.
    pub async fn wait_until_waiting(&self) {
        wait_until_true(&self.waits).await;
    }

    /// Marks that the work waits from now on.
    pub(crate) fn begin_wait(&self) {
        self.waits.send_replace(true);
    }

    /// Returns the stage of the operation of an installation when the work was interrupted, or `None` if it had not begun.
    #[must_use]
    pub fn stage(&self, installation: &InstallationName) -> Option<OperationStage> {
        let stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        stages.get(installation).copied()
    }

    /// Records the stage of an operation.
    pub(crate) fn record_stage(&self, installation: &InstallationName, stage: OperationStage) {
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        stages.insert(installation.clone(), stage);
    }

    /// Whether the work was interrupted.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        *self.asked.borrow()
    }

    /// Returns when the work is interrupted.
    pub async fn wait_interrupted(&self) {
        wait_until_true(&self.asked).await;
    }

    /// Ends the work now: helm is killed, and the next run recovers what it left.
    pub fn force(&self) {
        self.forced.send_replace(true);
        self.interrupt();
    }

    /// Returns a receiver that becomes true when the work is interrupted.
    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.asked.subscribe()
    }

    /// Does work that may stop at any point, unless it is interrupted: the end then waits for no source and no server.
    ///
    /// # Errors
    /// Those of the work, or the interruption.
    pub async fn unless_interrupted<T, E: From<Interrupted>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        tokio::select! {
            biased;
            () = self.wait_interrupted() => Err(Interrupted.into()),
            done = work => done,
        }
    }

    /// Returns a guard to hold while helm runs; it cannot be acquired after [`Interruption::interrupt`].
    pub(crate) async fn hold_helm(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.helm).read_owned().await
    }

    /// Runs the work until it is done or interrupted. After an interruption, `quiet` holds back further requests, and returns when every
    /// sent request is answered; until then the work receives the answers.
    ///
    /// # Errors
    /// The work was interrupted.
    pub(crate) async fn run_until_interrupted<T>(
        &self,
        work: impl Future<Output = T>,
        quiet: impl Future,
    ) -> Result<T, Interrupted> {
        let mut work = pin!(work);
        // Held while the work receives the last answers: no other helm begins.
        let _no_helm = tokio::select! {
            biased;
            ended = self.wait_for_helm() => ended.ok_or(Interrupted)?,
            done = &mut work => return Ok(done),
        };
        tokio::select! {
            biased;
            () = wait_until_true(&self.forced) => Err(Interrupted),
            done = work => Ok(done),
            _ = timeout(DRAINING, quiet) => Err(Interrupted),
        }
    }

    /// Waits until the work is interrupted and no helm runs. No helm begins while the guard is held. Returns `None` if the user forces the
    /// end.
    async fn wait_for_helm(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        self.wait_interrupted().await;
        tokio::select! {
            biased;
            () = wait_until_true(&self.forced) => None,
            no_helm = self.helm.write() => Some(no_helm),
        }
    }
}

/// Waits until the state is true.
async fn wait_until_true(state: &watch::Sender<bool>) {
    // The sender is borrowed here, so that it is not dropped meanwhile.
    let _ = state.subscribe().wait_for(|is_true| *is_true).await;
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::Poll;

    use futures::poll;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn an_interruption_ends_the_work_once_helm_has_ended() {
        let interruption = Interruption::default();
        assert_eq!(
            interruption
                .run_until_interrupted(async { 1 }, pending::<()>())
                .await,
            Ok(1)
        );
        let helm = interruption.hold_helm().await;
        let mut work = pin!(interruption.run_until_interrupted(pending::<()>(), ready(())));
        assert!(poll!(&mut work).is_pending());
        interruption.interrupt();
        assert!(poll!(&mut work).is_pending(), "helm still runs");
        let mut next = pin!(interruption.hold_helm());
        assert!(poll!(&mut next).is_pending(), "no other helm begins");
        drop(helm);
        assert_eq!(work.await, Err(Interrupted));
    }

    #[tokio::test]
    async fn a_part_ends_with_the_whole_and_by_itself() {
        let whole = Interruption::default();
        let (one, other) = (whole.part(), whole.part());
        one.supersede();
        let states = [&one, &other, &whole].map(Interruption::is_interrupted);
        assert_eq!(states, [true, false, false]);
        whole.interrupt();
        assert!(other.is_interrupted() && whole.part().is_interrupted());
        assert!(one.is_superseded() && !other.is_superseded());
    }

    #[tokio::test]
    async fn what_may_be_left_ends_at_once() {
        let interruption = Interruption::default();
        let done = interruption.unless_interrupted(ready(Ok::<_, Interrupted>(1)));
        assert_eq!(done.await, Ok(1));
        let mut work = pin!(interruption.unless_interrupted(pending::<Result<(), Interrupted>>()));
        assert!(poll!(&mut work).is_pending());
        interruption.interrupt();
        assert_eq!(poll!(&mut work), Poll::Ready(Err(Interrupted)));
        let later = interruption.unless_interrupted(ready(Ok::<_, Interrupted>(1)));
        assert_eq!(later.await, Err(Interrupted));
    }

    #[tokio::test]
    async fn what_was_sent_is_answered_before_the_work_ends() {
        let interruption = Interruption::default();
        let (answer, answered) = oneshot::channel::<()>();
        let mut taken = false;
        let work = async {
            let _ = answered.await;
            taken = true;
            pending::<()>().await;
        };
        let (all, quiet) = oneshot::channel::<()>();
        let mut ended = Box::pin(interruption.run_until_interrupted(work, quiet));
        interruption.interrupt();
        assert!(poll!(&mut ended).is_pending(), "an answer is missing");
        assert!(answer.send(()).is_ok() && all.send(()).is_ok());
        assert_eq!(ended.await, Err(Interrupted));
        assert!(taken);
    }

    #[tokio::test]
    async fn no_helm_begins_while_answers_are_awaited() {
        let interruption = Interruption::default();
        let (answer, answered) = oneshot::channel::<()>();
        let mut began = false;
        let work = async {
            let _ = answered.await;
            let _helm = interruption.hold_helm().await;
            began = true;
        };
        let (all, quiet) = oneshot::channel::<()>();
        let mut ended = Box::pin(interruption.run_until_interrupted(work, quiet));
        interruption.interrupt();
        assert!(poll!(&mut ended).is_pending(), "an answer is missing");
        assert!(answer.send(()).is_ok());
        assert!(poll!(&mut ended).is_pending(), "the work went on");
        assert!(all.send(()).is_ok());
        assert_eq!(ended.await, Err(Interrupted));
        assert!(!began);
    }

    #[tokio::test]
    async fn who_insists_waits_for_no_answer() {
        let interruption = Interruption::default();
        let _helm = interruption.hold_helm().await;
        interruption.interrupt();
        interruption.force();
        let mut work = pin!(interruption.run_until_interrupted(pending::<()>(), pending::<()>()));
        assert_eq!(poll!(&mut work), Poll::Ready(Err(Interrupted)));
    }

    #[tokio::test]
    async fn who_insists_does_not_wait_for_helm() {
        let interruption = Interruption::default();
        let _helm = interruption.hold_helm().await;
        interruption.interrupt();
        interruption.force();
        let work = interruption.run_until_interrupted(pending::<()>(), ready(()));
        assert_eq!(work.await, Err(Interrupted));
    }

    #[tokio::test]
    async fn everything_under_way_is_interrupted_and_nothing_else_begins() {
        let interruption = Interruption::default();
        let mut first = Box::pin(interruption.run_until_interrupted(pending::<()>(), ready(())));
        let mut second = Box::pin(interruption.run_until_interrupted(pending::<()>(), ready(())));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        interruption.clone().interrupt();
        assert_eq!(first.await, Err(Interrupted));
        assert_eq!(second.await, Err(Interrupted));
        let later = interruption.run_until_interrupted(pending::<()>(), ready(()));
        assert_eq!(later.await, Err(Interrupted));
    }
}
