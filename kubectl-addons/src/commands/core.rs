//! `core`: which add-ons are core in which cluster, why, and what lets them go.

mod explain;
mod list;
mod release;

use addons_operation::OperationError;
use addons_operation::core_set::Texts;
use addons_operation::core_set::look::{Look, contexts, look};
use anyhow::Result;

use crate::cli::core::Core;
use crate::exit::Exit;
use crate::session::Session;

/// Runs one of them.
///
/// # Errors
/// Those of the verb.
pub async fn run(session: &Session, verb: &Core) -> Result<Exit> {
    match verb {
        Core::List(args) => list::run(session, args).await,
        Core::Explain(args) => explain::run(session, args).await,
        Core::Release(args) => release::run(session, args).await,
    }
}

/// Each cluster by the namespace of its core records, or why it cannot be looked at.
async fn clusters(session: &Session) -> Result<Vec<(String, Result<Look, OperationError>)>> {
    let ctx = session.ctx();
    let texts = Texts::read(ctx).await?;
    let mut clusters = Vec::new();
    for ctx in contexts(ctx).await? {
        clusters.push((
            ctx.settings().records_namespace().to_owned(),
            look(&ctx, &texts, None).await,
        ));
    }
    Ok(clusters)
}
