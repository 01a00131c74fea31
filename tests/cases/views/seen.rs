//! What the loop and `sync` see is old, has gaps, or is the last that they see.

use std::time::{Duration, Instant};

use addons_tests::proxy::{Action, Fault};
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::soak::looped::Looped;
use crate::soak::synced::Synced;
use crate::soak::{Subject, converge};

/// Each of them comes so often.
const ROUNDS: usize = 2;
/// How long the past is shown.
const PAST: Duration = Duration::from_secs(4);
/// How long it may take until a request comes.
const COMES: Duration = Duration::from_secs(30);
/// What is read of the world: records, catalogues, and objects of the add-ons.
const READ: [&str; 6] = [
    "/addoninstallations",
    "/addoncatalogues",
    "/configmaps",
    "/deployments",
    "/secrets",
    "/serviceaccounts",
];

/// What is wrong with what is seen.
#[derive(Clone, Copy, Debug)]
enum View {
    /// A process that is restarted reads the past: the member that answers it lags behind.
    Stale,
    /// The same without a restart, and without a word of its watches.
    Lagging,
    /// Events never come.
    Hidden,
    /// The process ends at a write, and the next one begins with what it left.
    Intermediate,
}

impl View {
    const ALL: [Self; 4] = [Self::Stale, Self::Lagging, Self::Hidden, Self::Intermediate];

    /// Changes something while that is seen of it. What is wrong ends with it.
    async fn show(self, subject: &mut impl Subject, is_polled: bool) -> Result<()> {
        match self {
            Self::Stale => {
                remember(subject).await?;
                change(subject).await?;
                converge(subject, "what is not seen").await?;
                past(subject);
                restarted(subject).await?;
                sleep(PAST).await;
            }
            Self::Lagging => {
                remember(subject).await?;
                past(subject);
                subject.world().proxy.stall("watch=");
                change(subject).await?;
                sleep(PAST).await;
            }
            Self::Hidden => hidden(subject, is_polled).await?,
            Self::Intermediate => intermediate(subject).await?,
        }
        subject.world().proxy.heal();
        Ok(())
    }
}

/// Keeps what is read of a state, which is the past later.
async fn remember(subject: &mut impl Subject) -> Result<()> {
    subject.world().proxy.remember(true);
    subject.change().await?;
    converge(subject, "what is remembered").await?;
    subject.world().proxy.remember(false);
    Ok(())
}

/// Asks for something else, and changes an object as another client.
async fn change(subject: &mut impl Subject) -> Result<()> {
    subject.change().await?;
    subject.world().edit().await
}

/// From now on, what was kept is all that is read.
fn past(subject: &mut impl Subject) {
    for path in READ {
        let past = Fault::always(Action::Replay).method("GET").path(path);
        subject.world().proxy.fault(past);
    }
}

/// Kills the processes and starts others, which do not wait until the Leases of the dead expire.
async fn restarted(subject: &mut impl Subject) -> Result<()> {
    subject.restart()?;
    free_leases(&subject.world().stage).await
}

/// Gives away the Leases of processes that are dead.
async fn free_leases(stage: &Stage) -> Result<()> {
    let said = stage.kubectl(&["get", "leases", "-o", "json"]).await?;
    let leases: Value = serde_json::from_str(&said.stdout)?;
    for lease in leases["items"].as_array().into_iter().flatten() {
        let name = lease["metadata"]["name"].as_str().context("no name")?;
        let freed = json!({"spec": {"holderIdentity": ""}});
        stage.patch("lease", name, &freed).await?;
    }
    Ok(())
}

/// No watch says that anything changed, until the next look at everything. What never looks by itself hears of the objects at least:
/// an API server leaves out no event.
async fn hidden(subject: &mut impl Subject, is_polled: bool) -> Result<()> {
    let world = subject.world();
    let mut names = vec!["soak".to_owned()];
    for addon in &world.addons {
        names.extend([addon.name.clone(), format!("{}-extra", addon.name)]);
    }
    let count = if is_polled { READ.len() } else { 2 };
    for name in &names {
        for path in READ.iter().take(count) {
            let events = ["ADDED", "MODIFIED", "DELETED"];
            world.proxy.hide(path, &events, name);
        }
    }
    let before = world.proxy.hits();
    world.edit().await?;
    world.delete().await?;
    subject.change().await?;
    if is_polled {
        let proxy = &subject.world().proxy;
        until("an event is hidden", async || {
            let is_hidden = proxy.hits() > before;
            Ok(is_hidden.then_some(()).ok_or_else(String::new))
        })
        .await?;
    }
    converge(subject, "what was not heard").await
}

/// The process is stopped at one of its next writes.
async fn intermediate(subject: &mut impl Subject) -> Result<()> {
    let world = subject.world();
    let delivered = world.chance.below(2) == 0;
    let number = 1 + world.chance.below(8);
    let stop = Fault::at(number, Action::Stop { delivered });
    world.proxy.fault(stop.changes());
    subject.change().await?;
    let stopped = subject.world().proxy.stopped("default");
    let is_stopped = timeout(COMES, stopped).await.is_ok();
    ensure!(is_stopped, "write {number} did not come");
    subject.world().proxy.heal();
    restarted(subject).await
}

/// Lets each of them come, in a random order, and waits after each until the cluster is as it is asked for. `is_polled`: whether the
/// cluster is looked at again at an interval although nothing was heard of it.
async fn run(name: &'static str, mut subject: impl Subject, is_polled: bool) -> Result<()> {
    let mut tally = Tally::new(name);
    let seed = subject.world().chance.seed;
    tally.note(format!("SEED={seed}"));
    converge(&mut subject, "the start").await?;
    for _ in 0..ROUNDS {
        let views = subject.world().chance.shuffled(View::ALL.to_vec());
        for view in views {
            let begun = Instant::now();
            let what = format!("{view:?} of SEED={seed}");
            view.show(&mut subject, is_polled)
                .await
                .with_context(|| what.clone())?;
            converge(&mut subject, &what).await?;
            tally.ran();
            tally.note(format!("{view:?}: {:?}", begun.elapsed()));
        }
    }
    Ok(())
}

/// Semantics 13, 15, 20. At the interval it looks at what it has not heard of.
#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: stale and gapped views for minutes")]
async fn the_loop_converges_whatever_it_sees() -> Result<()> {
    run("views::loop", Looped::start("3s").await?, true).await
}

/// Semantics 13, 21.
#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: stale and gapped views for minutes")]
async fn a_synced_directory_converges_whatever_is_seen() -> Result<()> {
    run("views::synced", Synced::start().await?, false).await
}
