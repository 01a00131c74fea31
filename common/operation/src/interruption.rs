//! Ends an operation early. A running helm first marks its release as failed, and the locks are given back: the next run
//! continues at once.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::{Notify, OwnedRwLockReadGuard, RwLock};

/// The operation was ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted: what was begun is recorded, and the lock is free")]
pub struct Interrupted;

/// Interrupts the work of a command. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Interruption {
    asked: Arc<Notify>,
    forced: Arc<Notify>,
    helm: Arc<RwLock<()>>,
}

impl Interruption {
    /// Interrupts the work as soon as no helm runs; no other helm begins. Helm gets the Ctrl-C too, and has a bounded time to end.
    pub fn interrupt(&self) {
        self.asked.notify_one();
    }

    /// Ends the work now: helm is killed, and what it left is recovered by the next run.
    pub fn force(&self) {
        self.forced.notify_one();
        self.asked.notify_one();
    }

    /// Held while helm runs; it cannot be taken after [`Interruption::interrupt`].
    pub(crate) async fn helm_runs(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.helm).read_owned().await
    }

    /// Runs the work, unless it is interrupted.
    ///
    /// # Errors
    /// It was interrupted.
    pub(crate) async fn ends<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            biased;
            () = self.ended() => Err(Interrupted),
            done = work => Ok(done),
        }
    }

    async fn ended(&self) {
        self.asked.notified().await;
        tokio::select! {
            () = self.forced.notified() => {}
            helm = self.helm.write() => drop(helm),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn an_interruption_ends_the_work_once_helm_has_ended() {
        let interruption = Interruption::default();
        assert_eq!(interruption.ends(async { 1 }).await, Ok(1));
        let helm = interruption.helm_runs().await;
        let mut work = std::pin::pin!(interruption.ends(std::future::pending::<()>()));
        assert!(poll!(&mut work).is_pending());
        interruption.interrupt();
        assert!(poll!(&mut work).is_pending(), "helm still runs");
        let mut next = std::pin::pin!(interruption.helm_runs());
        assert!(poll!(&mut next).is_pending(), "no other helm begins");
        drop(helm);
        assert_eq!(work.await, Err(Interrupted));
    }

    #[tokio::test]
    async fn who_insists_does_not_wait_for_helm() {
        let interruption = Interruption::default();
        let _helm = interruption.helm_runs().await;
        interruption.interrupt();
        interruption.force();
        let work = interruption.ends(std::future::pending::<()>());
        assert_eq!(work.await, Err(Interrupted));
    }
}
