//! `core`: shows which add-ons are core in which cluster and why, and releases them.

mod explain;
mod list;
mod release;
mod restore;

use std::collections::BTreeSet;

use addons_engine::core_set::progress;
use addons_operation::OperationError;
use addons_operation::core_set::Texts;
use addons_operation::core_set::look::{Look, World};
use anyhow::Result;

use crate::cli::core::Core;
use crate::exit::Exit;
use crate::session::Session;

/// Runs a `core` command.
///
/// # Errors
/// Those of the command.
pub async fn run(session: &Session, verb: &Core) -> Result<Exit> {
    match verb {
        Core::List(args) => list::run(session, args).await,
        Core::Explain(args) => explain::run(session, args).await,
        Core::Release(args) => release::run(session, args).await,
        Core::Restore(args) => restore::run(session, args).await,
    }
}

/// The clusters that have a core set.
struct Clusters {
    /// Each by the namespace of its core records, with an error if it cannot be read.
    looks: Vec<(String, Result<Look, OperationError>)>,
    /// The namespaces of the clusters in which changes wait for other clusters.
    waiting: BTreeSet<String>,
}

async fn clusters(session: &Session) -> Result<Clusters> {
    let ctx = session.ctx();
    let home = ctx.home().await?;
    let world = World::read(ctx, Texts::read(ctx).await?).await?;
    let stored = progress::read(home, &ctx.settings().system_namespace).await?;
    let mut looks = Vec::new();
    for ctx in world.contexts(ctx) {
        looks.push((
            ctx.settings().records_namespace().to_owned(),
            world.look(&ctx, None).await,
        ));
    }
    let known: Vec<&Look> = looks
        .iter()
        .filter_map(|(_, look)| look.as_ref().ok())
        .collect();
    // Without waiting clusters, the catalogues are not needed.
    let is_current = !stored.progress.waiting.is_empty()
        && stored.progress.of == world.identity(ctx, &known).await?;
    Ok(Clusters {
        looks,
        waiting: if is_current {
            stored.progress.waiting
        } else {
            BTreeSet::new()
        },
    })
}
