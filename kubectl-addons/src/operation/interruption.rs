//! Ctrl-C in a command in which helm has a part: it is caught, so that helm can mark its release as failed before it ends, and
//! then ends the program here. Other commands it ends by itself. The next run continues in either case.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

/// The user pressed Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted: the same command continues where this ended")]
pub struct Interrupted;

/// Who ends the work of a command.
#[derive(Clone, Debug, Default)]
pub struct Interruption(Arc<RwLock<()>>);

impl Interruption {
    /// Held while helm runs; nobody gets it any more once the user pressed Ctrl-C.
    pub async fn helm_runs(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.0).read_owned().await
    }

    /// Does the work, which Ctrl-C ends as soon as no helm runs.
    ///
    /// # Errors
    /// It did.
    pub async fn ends<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            biased;
            () = self.asked() => Err(Interrupted),
            done = work => Ok(done),
        }
    }

    async fn asked(&self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        // Helm hears of it too, and has a bounded time to end.
        drop(self.0.write().await);
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn ctrl_c_ends_the_work_once_helm_has_ended() {
        let interruption = Interruption::default();
        assert_eq!(interruption.ends(async { 1 }).await, Ok(1));
        let helm = interruption.helm_runs().await;
        let mut work = std::pin::pin!(interruption.ends(std::future::pending::<()>()));
        assert!(poll!(&mut work).is_pending(), "from here on it is caught");
        let mut seen = std::pin::pin!(tokio::signal::ctrl_c());
        assert!(poll!(&mut seen).is_pending());
        let own = std::process::id().to_string();
        let kill = std::process::Command::new("kill")
            .args(["-INT", &own])
            .status();
        assert!(kill.unwrap().success());
        seen.await.unwrap();
        assert!(poll!(&mut work).is_pending(), "helm still runs");
        let mut next = std::pin::pin!(interruption.helm_runs());
        assert!(poll!(&mut next).is_pending(), "no other helm begins");
        drop(helm);
        assert_eq!(work.await, Err(Interrupted));
    }
}
