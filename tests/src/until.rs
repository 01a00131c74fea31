//! Waiting for what a test cannot be told of: asked for again until it is there, never longer than the deadline.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

/// How long anything may take on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// The first pause between two questions, and the longest: many questions start a program, and tests share the processor.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(400);

/// What `ask` finds, which says why where it is not there yet.
///
/// # Errors
/// Of `ask`; the last reason where the deadline has passed.
pub async fn until<T>(
    what: &str,
    ask: impl AsyncFnMut() -> Result<Result<T, String>>,
) -> Result<T> {
    within(DEADLINE, what, ask).await
}

/// As [`until`], for what may take longer by its own rules.
///
/// # Errors
/// As [`until`].
pub async fn within<T>(
    longest: Duration,
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<Result<T, String>>,
) -> Result<T> {
    let deadline = Instant::now() + longest;
    let mut pause = SHORTEST;
    loop {
        match ask().await? {
            Ok(found) => return Ok(found),
            Err(last) if Instant::now() > deadline => {
                bail!("{what}: not within {} s: {last}", longest.as_secs());
            }
            Err(_) => sleep(pause).await,
        }
        pause = LONGEST.min(pause * 3 / 2);
    }
}
