//! Ctrl-C and SIGTERM, and what Windows has in their place. While an operation writes, [`crate::change`] ends it in good order; at any other time, and where someone insists,
//! the program ends here, without what it wrote into temporary folders: keys, known hosts, kubeconfigs.

mod signals;

use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

use addons_sources::scratch;
use tokio::sync::watch;

use crate::exit::Exit;
use crate::output;
use signals::Signals;

/// What is said where a signal ends the program.
static LAST_WORDS: OnceLock<String> = OnceLock::new();
/// How many operations write, which end by themselves.
static WRITING: AtomicUsize = AtomicUsize::new(0);
/// How many signals were left to operations.
static ASKED: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::channel(0).0);
/// Signals until the program ends although an operation has not: the first ends the operation, the second helm too.
const PATIENCE: usize = 3;

/// Ends the program on a signal, from a thread of its own: the others may be waiting for an answer. Where that is not possible,
/// the system ends the program.
pub fn watch() {
    let builder = std::thread::Builder::new().name("signals".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    if let Ok(runtime) = runtime {
        // A program that cannot be watched works all the same.
        let _ = builder.spawn(move || runtime.block_on(end_on_signal()));
    }
}

async fn end_on_signal() {
    let mut signals = Signals::listen();
    let mut seen = 0;
    loop {
        signals.next().await;
        // Judged before an operation hears of it: one that ends at once would seem not to have been under way.
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

/// What a signal leaves behind, and how to continue: said once, by the command that runs.
pub fn on_end(words: String) {
    // A program runs one command.
    let _ = LAST_WORDS.set(words);
}

/// An operation writes until this is dropped.
#[derive(Debug)]
pub struct Writing(());

impl Writing {
    /// From now on signals are the operation's, which hears each of them.
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

/// The signals that ask an operation to end.
#[derive(Debug)]
pub struct Asked {
    asked: watch::Receiver<usize>,
    heard: usize,
}

impl Asked {
    /// Waits for the next one, which may have come already.
    pub async fn next(&mut self) {
        self.heard += 1;
        let heard = self.heard;
        // The sender is never dropped.
        let _ = self.asked.wait_for(|asked| *asked >= heard).await;
    }
}

/// Ends the program at once, without temporary folders.
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
