//! `rollback NAME [REVISION]`

use addons_operation::{Choices, Intent, Offer, Resolver};
use anyhow::Result;

use crate::cli::history::RollbackArgs;
use crate::exit::Exit;
use crate::session::Session;
use crate::{again, change, choices, prompt};

/// Rolls back to a revision, with a plan like that of an upgrade, and the spec and entry of the revision.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &RollbackArgs) -> Result<Exit> {
    again::once_more(async || rollback(session, args).await).await
}

async fn rollback(session: &Session, args: &RollbackArgs) -> Result<Exit> {
    let intent = Intent::Rollback {
        installation: args.name.clone(),
        to: args.request(),
    };
    let resolver = Resolver::new(session.ctx(), Offer::Catalogues).await?;
    let resolution = prompt::resolve_with_prompt(&resolver, &intent, args.change.run.yes).await?;
    let choices = Choices {
        allow_downgrade: true,
        wait_for_types: args.change.wait_for_types(),
        ..choices::parse_choices(args.change.accept, args.delete, &args.differences)
    };
    let plan = resolver.plan(resolution.whole()?, &choices).await?;
    let plan = plan.whole()?;
    change::check_named(session, &plan)?;
    change::run(session, plan, &args.change).await
}
