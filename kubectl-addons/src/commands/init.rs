//! `init`: installs the CRDs, and on request the webhook and the policies.

mod builtin;

use addons_engine::webhooks::WebhookAnswer;
use addons_operation::builtin::{definitions, webhook};
use anyhow::Result;

use crate::cli::reading::InitArgs;
use crate::exit::{Exit, UsageError};
use crate::session::Session;
use crate::{output, words};

/// Installs the CRDs, or updates older ones. Then the webhook and the policies if the flags ask for them.
///
/// # Errors
/// The server refuses a write.
pub async fn run(session: &Session, args: &InitArgs) -> Result<Exit> {
    let has_parts = args.webhook || args.policies;
    if args.dry_run {
        if !has_parts {
            return Err(UsageError(
                "--dry-run can only be used with --webhook and --policies".to_owned(),
            )
            .into());
        }
        return builtin::run(session, args).await;
    }
    for (definition, done) in definitions::install(session.ctx()).await? {
        output::note(&words::describe_definition(&definition, &done));
    }
    if has_parts {
        return builtin::run(session, args).await;
    }
    // Plain `init` says that nothing is enforced yet (semantics 17.1).
    let answer = webhook::probe(session.ctx()).await;
    output::note(if matches!(answer, Ok(WebhookAnswer::Denied)) {
        "the definitions are served, and the webhook enforces the rules"
    } else {
        "the definitions are served; nothing is enforced yet, for no admission webhook was installed"
    });
    Ok(Exit::Done)
}
