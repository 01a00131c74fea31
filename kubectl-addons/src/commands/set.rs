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

use crate::cli::operation::{ChangeArgs, DifferenceArgs, DryRunMode, RunArgs};
use crate::cli::plan::ApplyArgs;
use crate::exit::Exit;
use crate::output::{self, of_cluster};
use crate::session::Session;
use crate::set_place::SetPlace;
use crate::words::{self, typed as typed_again};
use crate::{change, choices, partial, prompt};

pub use typed::{TypedSet, read_typed};

/// The pause between two checks for a ready node.
const PAUSE: Duration = Duration::from_secs(2);

/// Applies a set. If no node is ready, installs core add-ons and network plugins first, because nodes need them, and everything else when a
/// node is ready.
///
/// The file is not a set, or an error of install, upgrade or uninstall.
pub async fn run(session: &Session, args: &ApplyArgs, path: &Path) -> Result<Exit> {
    let set = TypedSet::read(session, path, &args.members)?;
    let place = set.place();
    let set = set.into_declared(args.change.accept.allow_prune);
    let cluster = session.cluster().await?;
    if args.change.dry_run != DryRunMode::None || nodes::is_any_ready(cluster).await? != Some(false)
    {
        return apply_set(session, args, (set, &place), &args.change).await;
    }
    // With a turn, there is a single confirmation for the whole change.
    if session.turn().is_some() {
        let place = of_cluster::current_place();
        let again = place.as_deref().map(typed_again::command_for_place);
        output::note(&words::describe_new_cluster(&again.unwrap_or_default()));
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
        let unready = ChangeArgs {
            run: RunArgs {
                wait: false,
                ..args.change.run.clone()
            },
            ..args.change.clone()
        };
        let exit = apply_set(session, args, (first, &place), &unready).await?;
        if exit != Exit::Done || rest.is_empty() {
            return Ok(exit);
        }
    }
    if !wait_for_node(cluster, began + args.change.run.timeout).await? {
        output::note(&words::describe_no_node(
            rest.len(),
            &typed_again::command_for_clusters(&[]),
        ));
        return Ok(Exit::TimedOut);
    }
    // The first plans were rendered with facts from before there was a node.
    apply_set(&session.fresh(), args, (set, &place), &args.change).await
}

async fn apply_set(
    session: &Session,
    args: &ApplyArgs,
    (set, place): (DeclaredSet, &SetPlace),
    change: &ChangeArgs,
) -> Result<Exit> {
    let resolver = Resolver::new(session.ctx(), Offer::Catalogues).await?;
    let intent = Intent::Declared(set);
    let resolution = prompt::resolve_with_prompt(&resolver, &intent, change.run.yes).await?;
    let choices = Choices {
        repair: args.repair,
        allow_downgrade: args.allow_downgrade,
        wait_for_types: change.wait_for_types(),
        ..choices::parse_choices(change.accept, args.delete, &DifferenceArgs::default())
    };
    let plan = partial::plan_whole(&resolver, resolution, &choices, Some(place)).await?;
    change::run(session, plan, change).await
}

/// Waits until a node is ready. Returns `false` at the deadline.
async fn wait_for_node(cluster: &Cluster, deadline: Instant) -> Result<bool> {
    let mut is_told = false;
    while nodes::is_any_ready(cluster).await? == Some(false) {
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
