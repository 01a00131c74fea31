//! Work that goes on beside the tests, whatever their runtimes do.

use std::io;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

/// A future on a thread and a runtime of its own. A test may block while it runs, and it outlives the runtime of the test that
/// started it, as a cluster does that several tests share. Dropped, it is ended.
pub(crate) struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts it; `name` is the name of the thread.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub(crate) fn start(
        name: &str,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = work => {}
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there was printed there.
            let _ = thread.join();
        }
    }
}
