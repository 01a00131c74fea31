//! `install NAME[@VERSION]…`

mod named;
mod required;

use addons_operation::{Choices, Resolver};
use addons_plan::Verb;
use anyhow::Result;

use crate::cli::operation::{DeleteArgs, InstallArgs};
use crate::commands::delegated;
use crate::exit::{Exit, UsageError};
use crate::session::Session;
use crate::{change, choices, output, partial, words};

/// Installs add-ons. Installed ones are upgraded.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &InstallArgs) -> Result<Exit> {
    let named = named::resolve_names(session.ctx(), args).await?;
    let edits = choices::parse_edits(&args.values, &named.addons)?;
    let mut new = choices::parse_installations(&named.addons, &named.new, &edits)?;
    match (new.as_mut_slice(), &args.replace) {
        (_, None) => {}
        ([one], Some(replaced)) => one.replaces = Some(replaced.clone()),
        (_, Some(_)) => {
            let why = "--replace can only be used with a single add-on";
            return Err(UsageError(why.to_owned()).into());
        }
    }
    let resolver = Resolver::new(session.ctx(), named.offer).await?;
    let yes = args.change.run.yes;
    let resolution =
        required::resolve_with_required(&resolver, new, args.with_required, yes).await?;
    if let Some(why) = delegated::find_unavailable(session).await? {
        if args.replace.is_some() {
            let why = "--replace moves objects, and you may only write records";
            return Err(UsageError(why.to_owned()).into());
        }
        let change = &args.change;
        return delegated::write(session, resolution, &why, &change.run, change.dry_run).await;
    }
    let choices = Choices {
        wait_for_types: args.change.wait_for_types(),
        ..choices::parse_choices(args.change.accept, DeleteArgs::default(), &args.differences)
    };
    let plan = partial::plan_whole(&resolver, resolution, &choices, None).await?;
    change::check_named(session, &plan)?;
    let plans = plan.installations.iter().map(|planned| &planned.plan);
    for existing in plans.filter(|plan| plan.verb == Verb::Upgrade && plan.from.is_some()) {
        output::note(&words::describe_existing(&existing.installation.name));
    }
    change::run(session, plan, &args.change).await
}
