//! Shared by all transports: gix reads and writes on its own thread, and every byte passes here, where it is counted and where
//! the thread stops as soon as the caller no longer waits.

use std::future::Future;
use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::Problem;
use crate::Reach;

/// The transfer of one fetch.
#[derive(Debug)]
pub struct Wire {
    /// Set when the caller no longer waits; gix checks it between objects.
    pub stopped: AtomicBool,
    /// Which addresses are refused.
    pub reach: Reach,
    runtime: Handle,
    alive: watch::Receiver<()>,
    left: AtomicU64,
    failure: Mutex<Option<Problem>>,
}

/// Held by the caller; dropping it ends the transfer.
#[derive(Debug)]
pub struct Waiting {
    wire: std::sync::Arc<Wire>,
    _alive: watch::Sender<()>,
}

impl Wire {
    /// A transfer on this runtime, which may receive nothing until [`Wire::allow`].
    pub fn new(reach: Reach) -> (std::sync::Arc<Self>, Waiting) {
        let (sender, alive) = watch::channel(());
        let wire = std::sync::Arc::new(Self {
            stopped: AtomicBool::new(false),
            reach,
            runtime: Handle::current(),
            alive,
            left: AtomicU64::new(0),
            failure: Mutex::new(None),
        });
        let waiting = Waiting {
            wire: wire.clone(),
            _alive: sender,
        };
        (wire, waiting)
    }

    /// Sets how many bytes may be received from now on.
    pub fn allow(&self, bytes: u64) {
        self.left.store(bytes, Ordering::Relaxed);
    }

    /// Runs a future to its end.
    ///
    /// # Errors
    /// The caller no longer waits.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> io::Result<T> {
        let mut alive = self.alive.clone();
        let ended = self.runtime.block_on(async {
            tokio::select! {
                // Nothing is ever sent: the sender was dropped with the caller.
                _ = alive.changed() => None,
                ended = future => Some(ended),
            }
        });
        ended.ok_or_else(|| self.fail(Problem::Timeout))
    }

    /// Counts received bytes.
    ///
    /// # Errors
    /// More than allowed.
    pub fn received(&self, bytes: usize) -> io::Result<()> {
        let bytes = bytes as u64;
        let counted = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            });
        counted.map(drop).map_err(|_| self.fail(Problem::TooLarge))
    }

    /// Keeps the cause, which gix would replace with its own message, and ends the transfer. The first one is kept.
    pub fn fail(&self, error: Problem) -> io::Error {
        let text = error.to_string();
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        io::Error::other(text)
    }

    /// The cause that was kept.
    pub fn failure(&self) -> Option<Problem> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Enters the runtime, which is required to start processes.
    pub fn enter(&self) -> tokio::runtime::EnterGuard<'_> {
        self.runtime.enter()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.wire.stopped.store(true, Ordering::Relaxed);
    }
}
