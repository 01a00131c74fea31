//! A sign of life for what tells nothing by itself while it takes a while: a fetch, a helm.

use std::pin::pin;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::timeout;

use crate::output;

/// What is done sooner is not told on a terminal, where the line goes away again.
const TERMINAL: Duration = Duration::from_secs(1);
/// The same for a log, where the line stays.
const LOG: Duration = Duration::from_secs(2);
/// How often the line on a terminal counts.
const TICK: Duration = Duration::from_secs(1);

/// Awaits `work`. Where that takes a while, `what` is told: on a terminal in a line that counts and goes away, elsewhere once.
pub async fn patiently<W: Future>(what: &str, work: W) -> W::Output {
    let live = output::live();
    let mut work = pin!(work);
    if let Ok(done) = timeout(if live { TERMINAL } else { LOG }, &mut work).await {
        return done;
    }
    if !live {
        output::note(&format!("  … {what}"));
        return work.await;
    }
    let bar = counting().with_elapsed(TERMINAL);
    bar.set_message(format!("… {}", output::plain(what)));
    let done = work.await;
    bar.finish_and_clear();
    done
}

/// A line on a terminal that counts how long it has been there.
pub fn counting() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    // It is a constant; a bar in another style tells the same.
    if let Ok(style) = ProgressStyle::with_template("  {msg}  {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}
