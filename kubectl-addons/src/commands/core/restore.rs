//! `core restore`: writes deleted records again, and nothing else.

use addons_operation::Resolver;
use anyhow::Result;

use crate::cli::core::Restore;
use crate::cli::operation::New;
use crate::exit::Exit;
use crate::session::Session;
use crate::{change, choices};

/// Shows the plan, asks, and writes the records.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &Restore) -> Result<Exit> {
    let new = New {
        named: args.named.clone(),
        core: true,
    };
    let edits = choices::edits(&args.values, &args.addons)?;
    let named = choices::installations(&args.addons, &new, &edits)?;
    let resolver = Resolver::new(session.ctx(), choices::offer(&args.source)).await?;
    let plan = resolver.restore_core(&named).await?;
    if args.dry_run {
        return Ok(change::preview(session, &plan));
    }
    change::execute(session, plan, &args.run, false).await
}
