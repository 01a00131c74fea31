//! `core`: shows which add-ons are core in which cluster and why, and releases them.

mod explain;
mod list;
pub mod release;
mod restore;

use std::collections::BTreeSet;

use addons_distribution::core_set::CoreSetTexts;
use addons_distribution::core_set::look::{ClusterLook, CoreSetInputs};
use addons_distribution::core_set::progress;
use addons_operation::OperationError;
use anyhow::Result;
use common::api::installation::AddonInstallation;

use crate::cli::core::CoreCommand;
use crate::exit::Exit;
use crate::session::Session;

/// Runs a `core` command.
///
/// # Errors
/// Those of the command.
pub async fn run(session: &Session, verb: &CoreCommand) -> Result<Exit> {
    match verb {
        CoreCommand::List(args) => list::run(session, args).await,
        CoreCommand::Explain(args) => explain::run(session, args).await,
        CoreCommand::Release(args) => release::run(session, args).await,
        CoreCommand::Restore(args) => restore::run(session, args).await,
    }
}

/// The clusters that have a core set.
struct CoreClusters {
    /// Each by the namespace of its core records. One that cannot be read has its records and the error.
    looks: Vec<(String, Result<ClusterLook, UnreadCluster>)>,
    /// The namespaces of the clusters in which changes wait for other clusters.
    waiting: BTreeSet<String>,
}

/// A cluster whose core set cannot be read.
struct UnreadCluster {
    /// Why.
    error: OperationError,
    /// The records in its namespace, as far as they can be read.
    records: Vec<AddonInstallation>,
}

async fn read_clusters(session: &Session) -> Result<CoreClusters> {
    let ctx = session.ctx();
    let home = ctx.home().await?;
    let world = CoreSetInputs::read(ctx, CoreSetTexts::read(ctx).await?).await?;
    let stored = progress::read(home, &ctx.settings().system_namespace).await?;
    let mut looks = Vec::new();
    for ctx in world.contexts(ctx) {
        let look = match world.look_at(&ctx, None).await {
            Ok(look) => Ok(look),
            Err(error) => {
                let records = world.records(&ctx).await.unwrap_or_default();
                Err(UnreadCluster { error, records })
            }
        };
        looks.push((ctx.settings().records_namespace().to_owned(), look));
    }
    let known: Vec<&ClusterLook> = looks
        .iter()
        .filter_map(|(_, look)| look.as_ref().ok())
        .collect();
    // Without waiting clusters, the catalogues are not needed.
    let is_current = !stored.progress.waiting.is_empty()
        && stored.progress.of == world.identity(ctx, &known).await?;
    Ok(CoreClusters {
        looks,
        waiting: if is_current {
            stored.progress.waiting
        } else {
            BTreeSet::new()
        },
    })
}
