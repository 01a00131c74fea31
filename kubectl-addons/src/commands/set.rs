//! `apply -f SET`: every installation of a file is installed, or gets the spec that the file has (semantics 17).

use std::path::Path;
use std::time::Duration;

use addons_engine::{Cluster, nodes};
use addons_operation::{Choices, Intent, Offer, Resolver};
use anyhow::{Context as _, Result, bail};
use common::api::installation::AddonInstallation;
use common::set;
use tokio::time::{Instant, sleep};

use crate::cli::operation::{Change, DryRun, Run};
use crate::cli::plan::Apply;
use crate::commands::apply::bounded;
use crate::exit::Exit;
use crate::session::Session;
use crate::words::fleet as words;
use crate::{change, output, prompt};

/// Bytes of a set.
const LARGEST: usize = 8 * 1024 * 1024;
/// How often nodes are looked at that are not ready.
const PAUSE: Duration = Duration::from_secs(2);

/// Applies a set. Where no node is ready, core add-ons and network plugins are installed first, for nodes become ready through them,
/// and the rest when one is.
///
/// # Errors
/// The file is not a set; those of install and upgrade.
pub async fn run(session: &Session, args: &Apply, path: &Path) -> Result<Exit> {
    let set = read(path, session.ctx().settings().records_namespace())?;
    let change = |wait| Change {
        dry_run: match args.dry_run {
            true => DryRun::Client,
            false => DryRun::None,
        },
        accept: Default::default(),
        no_init: args.no_init,
        run: Run {
            wait,
            ..args.run.clone()
        },
    };
    let cluster = session.cluster().await?;
    if args.dry_run || nodes::is_one_ready(cluster).await? != Some(false) {
        return apply(session, set, &change(args.run.wait)).await;
    }
    // One question and one turn are about all of what a cluster gets.
    if session.turn().is_some() {
        output::note(&words::new_cluster(session.global(), path));
        return Ok(Exit::TimedOut);
    }
    let began = Instant::now();
    let (first, rest): (Vec<_>, Vec<_>) = set.into_iter().partition(set::comes_before_nodes);
    if !first.is_empty() {
        let exit = apply(session, first, &change(false)).await?;
        if exit != Exit::Done || rest.is_empty() {
            return Ok(exit);
        }
    }
    if !is_node_ready(cluster, began + args.run.timeout).await? {
        let again = path.display();
        output::note(&format!(
            "no node is ready: {} add-ons wait for one\ncontinue: kubectl addons apply -f {again}",
            rest.len()
        ));
        return Ok(Exit::TimedOut);
    }
    apply(session, rest, &change(args.run.wait)).await
}

async fn apply(session: &Session, set: Vec<AddonInstallation>, change: &Change) -> Result<Exit> {
    let resolver = Resolver::new(session.ctx(), Offer::Catalogues).await?;
    let intent = Intent::Declared(set);
    let resolution = prompt::resolve(&resolver, &intent, change.run.yes).await?;
    let choices = Choices {
        wait_for_types: change.wait_for_types(),
        ..Choices::default()
    };
    let plan = resolver.plan(resolution.whole()?, &choices).await?;
    change::run(session, plan.whole()?, change).await
}

/// Waits for a node that is ready.
async fn is_node_ready(cluster: &Cluster, deadline: Instant) -> Result<bool> {
    let mut is_told = false;
    while nodes::is_one_ready(cluster).await? == Some(false) {
        if Instant::now() + PAUSE > deadline {
            return Ok(false);
        }
        if !is_told {
            output::note("waiting for a node that is ready");
            is_told = true;
        }
        sleep(PAUSE).await;
    }
    Ok(true)
}

fn read(path: &Path, namespace: &str) -> Result<Vec<AddonInstallation>> {
    let name = path.display().to_string();
    let bytes = bounded(path, LARGEST).with_context(|| format!("set {name}"))?;
    if bytes.len() > LARGEST {
        bail!("set {name}: more than {LARGEST} bytes; split it");
    }
    Ok(set::read(&bytes, &name, namespace)?)
}
