//! Handles Ctrl-C and SIGTERM, and their equivalents on Windows. While an operation writes, [`crate::change`] ends it in an orderly way. At
//! any other time, or if the user insists, the program ends here and removes its temporary folders: keys, known hosts, kubeconfigs.

mod signals;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

use tokio::sync::watch;

use crate::exit::{Exit, exit};
use crate::output;
use signals::Signals;

/// The text that is printed when a signal ends the program.
static LAST_WORDS: OnceLock<String> = OnceLock::new();
/// How many operations are writing. They end by themselves.
static ACTIVE_WRITERS: AtomicUsize = AtomicUsize::new(0);
/// How many signals were passed to operations.
static SIGNALS_PASSED: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::channel(0).0);
/// The number of signals that ends the program during an operation: the first ends the operation, the second also helm.
const MAX_SIGNALS: usize = 3;

/// Ends the program on a signal, from its own thread, because the others may be waiting for a response. If the thread cannot start, the
/// system ends the program.
pub fn spawn_signal_thread() {
    let builder = std::thread::Builder::new().name("signals".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    if let Ok(runtime) = runtime {
        // The program works without this thread, too.
        let _ = builder.spawn(move || runtime.block_on(end_on_signal()));
    }
}

async fn end_on_signal() {
    let mut signals = Signals::listen();
    let mut seen = 0;
    loop {
        signals.next().await;
        // Check before notifying: an operation that ends at once would no longer count as running.
        let writes = ACTIVE_WRITERS.load(Ordering::SeqCst) > 0;
        seen = if writes { seen + 1 } else { MAX_SIGNALS };
        if seen >= MAX_SIGNALS {
            if let Some(words) = LAST_WORDS.get() {
                output::note(words);
            }
            exit(Exit::Interrupted);
        }
        SIGNALS_PASSED.send_modify(|asked| *asked += 1);
    }
}

/// Sets the text that is printed when a signal ends the program: what it leaves behind and how to continue. Only the first call counts.
pub fn set_last_words(words: String) {
    // A program runs one command.
    let _ = LAST_WORDS.set(words);
}

/// A guard: an operation is writing until it is dropped.
#[derive(Debug)]
pub struct WritingGuard(());

impl WritingGuard {
    /// Begins to pass signals to the operation, which receives each of them.
    pub fn begin() -> (Self, SignalReceiver) {
        let asked = SIGNALS_PASSED.subscribe();
        let heard = *asked.borrow();
        ACTIVE_WRITERS.fetch_add(1, Ordering::SeqCst);
        (Self(()), SignalReceiver { asked, heard })
    }
}

impl Drop for WritingGuard {
    fn drop(&mut self) {
        ACTIVE_WRITERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The receiver of signals that ask an operation to end.
#[derive(Debug)]
pub struct SignalReceiver {
    asked: watch::Receiver<usize>,
    heard: usize,
}

impl SignalReceiver {
    /// Waits for the next signal, which may already have arrived.
    pub async fn next(&mut self) {
        self.heard += 1;
        let heard = self.heard;
        // The sender is never dropped.
        let _ = self.asked.wait_for(|asked| *asked >= heard).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn signals_that_come_before_anyone_listens_are_heard() {
        let (_writing, mut asked) = WritingGuard::begin();
        for _ in 0..2 {
            SIGNALS_PASSED.send_modify(|asked| *asked += 1);
        }
        assert_eq!(asked.next().now_or_never(), Some(()));
        assert_eq!(asked.next().now_or_never(), Some(()));
        assert_eq!(asked.next().now_or_never(), None);
    }
}
