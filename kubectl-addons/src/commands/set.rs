//! `apply -f SET`: installs every installation of a file, or gives it the spec in the file. With `--prune`, uninstalls members that are no
//! longer in the file (semantics 17.8 and 17.9). `plan` and `diff` read the same file.

mod typed;

use std::path::Path;
use std::time::Duration;

use addons_engine::{Cluster, nodes};
use addons_operation::set::comes_before_nodes;
use addons_operation::{Choices, DeclaredSet, Intent, Offer, Resolver};
use anyhow::Result;
use tokio::time::{Instant, sleep};

use crate::cli::operation::{Change, Differences, DryRun, Run};
use crate::cli::plan::Apply;
use crate::exit::Exit;
use crate::output::{self, of_cluster};
use crate::session::Session;
use crate::words::{fleet as words, typed as typed_again};
use crate::{change, choices, prompt};

pub use typed::{InSet, SetPlace, TypedSet, typed, within};

/// The pause between two checks for a ready node.
const PAUSE: Duration = Duration::from_secs(2);

/// Applies a set. If no node is ready, installs core add-ons and network plugins first, because nodes need them, and everything else when a
/// node is ready.
///
/// The file is not a set, or an error of install, upgrade or uninstall.
pub async fn run(session: &Session, args: &Apply, path: &Path) -> Result<Exit> {
    let set = TypedSet::read(session, path, &args.members)?;
    let place = set.place();
    let set = set.declared(args.change.accept.allow_prune);
    let cluster = session.cluster().await?;
    if args.change.dry_run != DryRun::None || nodes::is_one_ready(cluster).await? != Some(false) {
        return apply(session, args, (set, &place), &args.change).await;
    }
    // On one of several clusters, there is a single confirmation and turn for the whole change.
    if session.turn().is_some() {
        let place = of_cluster::place();
        let again = place.as_deref().map(typed_again::for_place);
        output::note(&words::new_cluster(&again.unwrap_or_default()));
        return Ok(Exit::TimedOut);
    }
    let began = Instant::now();
    let (early, rest): (Vec<_>, Vec<_>) = set
        .installations
        .iter()
        .cloned()
        .partition(comes_before_nodes);
    let first = DeclaredSet {
        installations: early,
        // Only the whole file shows which members were removed.
        prune: set.prune.filter(|_| rest.is_empty()),
        ..set.clone()
    };
    if !first.installations.is_empty() {
        let unready = Change {
            run: Run {
                wait: false,
                ..args.change.run.clone()
            },
            ..args.change.clone()
        };
        let exit = apply(session, args, (first, &place), &unready).await?;
        if exit != Exit::Done || rest.is_empty() {
            return Ok(exit);
        }
    }
    if !is_node_ready(cluster, began + args.change.run.timeout).await? {
        output::note(&words::no_node(rest.len(), &typed_again::for_clusters(&[])));
        return Ok(Exit::TimedOut);
    }
    // The first plans were rendered with facts from before there was a node.
    apply(&session.fresh(), args, (set, &place), &args.change).await
}

async fn apply(
    session: &Session,
    args: &Apply,
    (set, place): (DeclaredSet, &SetPlace),
    change: &Change,
) -> Result<Exit> {
    let resolver = Resolver::new(session.ctx(), Offer::Catalogues).await?;
    let intent = Intent::Declared(set);
    let resolution = prompt::resolve(&resolver, &intent, change.run.yes).await?;
    let choices = Choices {
        repair: args.repair,
        allow_downgrade: args.allow_downgrade,
        wait_for_types: change.wait_for_types(),
        ..choices::choices(change.accept, args.delete, &Differences::default())
    };
    let plan = resolver.plan(resolution.whole()?, &choices).await?;
    let plan = plan.whole().map_err(|error| place.clone().within(error))?;
    change::run(session, plan, change).await
}

/// Waits until a node is ready. Returns `false` at the deadline.
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
