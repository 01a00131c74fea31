//! `core restore`: writes deleted records again, and nothing else.

use addons_distribution::core_set::restore::restore_core;
use addons_operation::Resolver;
use anyhow::Result;

use crate::cli::core::CoreRestoreArgs;
use crate::cli::operation::NewInstallationArgs;
use crate::exit::Exit;
use crate::session::Session;
use crate::{change, choices};

/// Shows the plan, asks, and writes the records.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &CoreRestoreArgs) -> Result<Exit> {
    let new = NewInstallationArgs {
        named: args.named.clone(),
        core: true,
    };
    let edits = choices::parse_edits(&args.values, &args.addons)?;
    let named = choices::parse_installations(&args.addons, &new, &edits)?;
    let resolver = Resolver::new(session.ctx(), choices::parse_offer(&args.source)).await?;
    let plan = restore_core(&resolver, &named).await?;
    if args.dry_run {
        return change::preview(session, &plan).await;
    }
    change::execute(session, plan, &args.run, false).await
}
