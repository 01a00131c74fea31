//! Random faults, one after the other, while a loop runs: after each of them the cluster comes to what is asked for, and nothing
//! else of it changed.
//!
//! `SOAK_SECONDS` is how long each test goes on, and `SEED` what chance decides.

mod api;
pub(crate) mod looped;
pub(crate) mod synced;
pub(crate) mod world;

use std::fmt::Debug;
use std::time::Duration;

use addons_tests::control_plane::Own;
use addons_tests::running::Running;
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use addons_tests::until::within;
use anyhow::{Context as _, Result};
use tokio::time::Instant;

use world::World;

/// How long a test goes on where nothing else is asked for.
const SECONDS: u64 = 45;
/// How long it may take to converge: a Lease that expires, and then a turn for each revision of the directory that is newer, take most
/// of a minute by themselves.
const LONGEST: Duration = Duration::from_secs(150);
/// So many of the last lines that a process said are shown with a failure, and so much of each.
const SAID: usize = 8;
const WIDTH: usize = 600;

/// A loop under test.
pub(crate) trait Subject {
    /// What may happen.
    type Event: Copy + Debug;

    /// Everything that may happen, the frequent more than once.
    fn events() -> Vec<Self::Event>;
    /// Does it.
    async fn happen(&mut self, event: Self::Event) -> Result<()>;
    /// Asks for something else.
    async fn change(&mut self) -> Result<()>;
    /// Kills the processes, and starts others.
    fn restart(&mut self) -> Result<()>;
    /// The cluster, and what is asked of it.
    fn world(&mut self) -> &mut World;
    /// The processes at work.
    fn processes(&self) -> Vec<&Running>;
}

/// Lets one thing after the other happen. Every event comes before one of them comes again.
async fn run(name: &'static str, mut subject: impl Subject) -> Result<()> {
    let mut tally = Tally::new(name);
    let ended = events(&mut tally, &mut subject).await;
    if let Err(error) = &ended {
        // Beside the figures: the report of a failed test is far from them, and long.
        let text = format!("{error:#}");
        let lines: Vec<&str> = text.lines().collect();
        let last = lines.len().saturating_sub(SAID).max(1);
        for line in lines.iter().take(1).chain(lines.iter().skip(last)) {
            tally.note(line.chars().take(WIDTH).collect::<String>());
        }
    }
    ended
}

async fn events(tally: &mut Tally, subject: &mut impl Subject) -> Result<()> {
    let end = Instant::now() + duration()?;
    let seed = subject.world().chance.seed;
    tally.note(format!("SEED={seed}"));
    converge(subject, "the start").await?;
    let mut longest = (Duration::ZERO, String::new());
    let mut waiting = Vec::new();
    while Instant::now() < end {
        let Some(event) = waiting.pop() else {
            let all = all_of(subject);
            waiting = subject.world().chance.shuffled(all);
            continue;
        };
        let begun = Instant::now();
        let what = format!("{event:?}, the {}. event of SEED={seed}", tally.count() + 1);
        subject.happen(event).await.with_context(|| what.clone())?;
        converge(subject, &what).await?;
        subject.world().proxy.heal();
        longest = longest.max((begun.elapsed(), what));
        tally.ran();
    }
    let broken = subject.world().proxy.hits();
    tally.note(format!("{broken} requests went wrong"));
    tally.note(format!("longest: {:?} for {}", longest.0, longest.1));
    Ok(())
}

fn all_of<S: Subject>(_: &S) -> Vec<S::Event> {
    S::events()
}

/// Until the cluster is as it is asked for.
pub(crate) async fn converge(subject: &mut impl Subject, after: &str) -> Result<()> {
    let what = format!("it converges after {after}");
    within(LONGEST, &what, async || {
        // An API server without enough CPU answers some reads with an error.
        let state = subject.world().state().await;
        let state = state.unwrap_or_else(|error| Err(format!("{error:#}")));
        Ok(state.map_err(|why| {
            let said = subject.processes().into_iter().map(Running::said);
            format!("{why}\n{}", said.collect::<Vec<_>>().join("\n"))
        }))
    })
    .await?;
    subject.world().foreign_is_untouched().await
}

/// How long a test goes on.
fn duration() -> Result<Duration> {
    let seconds = match std::env::var("SOAK_SECONDS") {
        Ok(text) => text
            .parse()
            .with_context(|| format!("SOAK_SECONDS={text}"))?,
        Err(_) => SECONDS,
    };
    Ok(Duration::from_secs(seconds))
}

/// A user of a cluster that only these tests use: what a loop does there has no other cause.
async fn stage(what: &str) -> Result<Stage> {
    static CLUSTER: Own = Own::new();
    Stage::of_module(&CLUSTER, what).await
}
