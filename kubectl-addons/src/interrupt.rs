//! Handles Ctrl-C and SIGTERM, and their equivalents on Windows. While an operation writes, [`crate::change`] ends it in an orderly way. At
//! any other time, or if the user insists, the program ends here and removes its temporary folders: keys, known hosts, kubeconfigs.

mod signals;

use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

use addons_sources::scratch;
use tokio::sync::watch;

use crate::exit::Exit;
use crate::output;
use signals::Signals;

/// The text that is printed when a signal ends the program.
static LAST_WORDS: OnceLock<String> = OnceLock::new();
/// How many operations are writing. They end by themselves.
static WRITING: AtomicUsize = AtomicUsize::new(0);
/// How many signals were passed to operations.
static ASKED: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::channel(0).0);
/// The number of signals that ends the program during an operation: the first ends the operation, the second also helm.
const PATIENCE: usize = 3;

/// Ends the program on a signal, from its own thread, because the others may be waiting for a response. If the thread cannot start, the
/// system ends the program.
pub fn watch() {
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
        let writes = WRITING.load(Ordering::SeqCst) > 0;
        seen = if writes { seen + 1 } else { PATIENCE };
        if seen >= PATIENCE {
            if let Some(words) = LAST_WORDS.get() {
                output::note(words);
            }
            exit(Exit::Interrupted);
        }
        ASKED.send_modify(|asked| *asked += 1);
    }
}

/// Sets the text that is printed when a signal ends the program: what it leaves behind and how to continue. Only the first call counts.
pub fn on_end(words: String) {
    // A program runs one command.
    let _ = LAST_WORDS.set(words);
}

/// A guard: an operation is writing until it is dropped.
#[derive(Debug)]
pub struct Writing(());

impl Writing {
    /// Begins to pass signals to the operation, which receives each of them.
    pub fn begin() -> (Self, Asked) {
        let asked = ASKED.subscribe();
        let heard = *asked.borrow();
        WRITING.fetch_add(1, Ordering::SeqCst);
        (Self(()), Asked { asked, heard })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        WRITING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The receiver of signals that ask an operation to end.
#[derive(Debug)]
pub struct Asked {
    asked: watch::Receiver<usize>,
    heard: usize,
}

impl Asked {
    /// Waits for the next signal, which may already have arrived.
    pub async fn next(&mut self) {
        self.heard += 1;
        let heard = self.heard;
        // The sender is never dropped.
        let _ = self.asked.wait_for(|asked| *asked >= heard).await;
    }
}

/// Ends the program at once, and removes its temporary folders.
pub fn exit(exit: Exit) -> ! {
    scratch::remove_all();
    process::exit(exit as i32)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn signals_that_come_before_anyone_listens_are_heard() {
        let (_writing, mut asked) = Writing::begin();
        for _ in 0..2 {
            ASKED.send_modify(|asked| *asked += 1);
        }
        assert_eq!(asked.next().now_or_never(), Some(()));
        assert_eq!(asked.next().now_or_never(), Some(()));
        assert_eq!(asked.next().now_or_never(), None);
    }
}
