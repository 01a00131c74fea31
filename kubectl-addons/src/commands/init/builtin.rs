//! `init --webhook --policies`: installs the add-ons that are built into this program.

use addons_engine::webhooks::WebhookAnswer;
use addons_operation::builtin::webhook::{self, UnansweredRequests};
use addons_operation::builtin::{POLICIES, WEBHOOK, rights};
use addons_operation::{
    Choices, Edits, IndexLocation, Intent, NewInstallation, Offer, Plan, Resolver, VersionedName,
};
use anyhow::Result;
use common::api::names::SYSTEM_NAMESPACE;

use crate::change::{self, UNCHANGED};
use crate::cli::reading::InitArgs;
use crate::exit::{Exit, UsageError};
use crate::refusal::AnnouncedRefusal;
use crate::session::Session;
use crate::words::typed;
use crate::{again, output, prompt};

/// The message if the webhook denies what it must.
const WEBHOOK_REQUIRED: &str =
    "the webhook denies what it must, and is required from now on (failurePolicy Fail)";

/// The message if the webhook does not deny in time.
const NOT_DENIED: &str = "the webhook does not deny a request that it must deny, and what it does not answer passes (failurePolicy Ignore)";

/// Installs or upgrades what the flags name, and restores edited or deleted objects. Until the webhook was seen to deny, its failurePolicy
/// is Ignore, also if an existing webhook stopped answering.
///
/// # Errors
/// Nothing was written: the user declined, or there is no terminal to ask on.
pub async fn run(session: &Session, args: &InitArgs) -> Result<Exit> {
    check_namespaces(session)?;
    again::once_more(async || install(session, args).await).await
}

async fn install(session: &Session, args: &InitArgs) -> Result<Exit> {
    let ctx = session.ctx();
    let resolver = Resolver::new(ctx, builtin_offer()).await?;
    let mut answer = WebhookAnswer::Denied;
    let mut server = None;
    if args.webhook {
        answer = webhook::probe(ctx).await?;
        server = Some(server_plan(&resolver, args, &answer).await?);
    }
    let mut policies = None;
    if args.policies {
        policies = Some(plan_builtin(&resolver, POLICIES, Edits::default()).await?);
    }
    for plan in [&server, &policies].into_iter().flatten() {
        change::report_up_to_date(session, plan).await?;
        change::announce(session, plan);
    }
    // Name all missing permissions before the server refuses the first write.
    for plan in [&server, &policies].into_iter().flatten() {
        rights::check(ctx, plan).await?;
    }
    for plan in [&server, &policies].into_iter().flatten() {
        plan.check().map_err(AnnouncedRefusal::wrap)?;
    }
    match &answer {
        WebhookAnswer::Unanswered(why) => output::note(&format!(
            "{why}\nuntil the webhook denies again, what it should judge passes (failurePolicy Ignore)"
        )),
        WebhookAnswer::Refused(why) => output::note(why),
        WebhookAnswer::Denied | WebhookAnswer::Accepted => {}
    }
    if args.dry_run {
        for plan in [&server, &policies].into_iter().flatten() {
            change::report_closed_window(session, plan).await?;
        }
        output::note(UNCHANGED);
        return Ok(Exit::Done);
    }
    for plan in [&server, &policies].into_iter().flatten() {
        change::accept_closed_window(session, plan, &args.run).await?;
    }
    let plans = [&server, &policies].into_iter().flatten();
    let is_planned = plans.filter(|plan| !plan.is_empty()).count() > 0;
    if (is_planned || answer != WebhookAnswer::Denied) && !args.run.yes {
        prompt::confirm("Continue? [y/N] ")?;
    }
    if let Some(plan) = server {
        let was_required = webhook::is_required(&resolver);
        let exit = install_webhook(session, args, plan, &answer, was_required).await?;
        if exit != Exit::Done {
            return Ok(exit);
        }
    }
    match policies {
        Some(plan) => execute(session, plan, args).await,
        None => Ok(Exit::Done),
    }
}

/// Installs the webhook, and sets failurePolicy Fail once it denies what it must.
async fn install_webhook(
    session: &Session,
    args: &InitArgs,
    plan: Plan,
    answer: &WebhookAnswer,
    was_required: bool,
) -> Result<Exit> {
    if matches!(answer, WebhookAnswer::Unanswered(_)) {
        webhook::ignore_failures(session.ctx()).await?;
    }
    let exit = execute(session, plan, args).await?;
    if exit != Exit::Done {
        return Ok(exit);
    }
    if *answer == WebhookAnswer::Denied {
        if !was_required {
            output::note(WEBHOOK_REQUIRED);
        }
        return Ok(exit);
    }
    let command = typed::continue_command("kubectl addons init --webhook --yes");
    if !args.run.wait {
        if !matches!(answer, WebhookAnswer::Refused(_)) {
            output::note(&format!(
                "the webhook judges, and what it does not answer passes (failurePolicy Ignore)\nfix:    {command}"
            ));
        }
        return Ok(Exit::Done);
    }
    let why = match webhook::wait_until_denying(session.ctx(), args.run.timeout).await? {
        WebhookAnswer::Denied => None,
        WebhookAnswer::Refused(why) => Some(why),
        WebhookAnswer::Accepted | WebhookAnswer::Unanswered(_) => Some(NOT_DENIED.to_owned()),
    };
    if let Some(why) = why {
        output::note(&format!(
            "{why}\nlook:   kubectl logs deployment/{WEBHOOK} -n {SYSTEM_NAMESPACE}\nfix:    {command}"
        ));
        return Ok(Exit::TimedOut);
    }
    let resolver = Resolver::new(session.ctx(), builtin_offer()).await?;
    let plan = server_plan(&resolver, args, &WebhookAnswer::Denied).await?;
    let exit = execute(session, plan, args).await?;
    if exit == Exit::Done {
        output::note(WEBHOOK_REQUIRED);
    }
    Ok(exit)
}

async fn server_plan(
    resolver: &Resolver<'_>,
    args: &InitArgs,
    answer: &WebhookAnswer,
) -> Result<Plan> {
    let unanswered = match answer {
        WebhookAnswer::Denied => UnansweredRequests::Fail,
        // The webhook would also refuse the change of its own record.
        WebhookAnswer::Refused(_) if webhook::is_required(resolver) => UnansweredRequests::Fail,
        WebhookAnswer::Refused(_) => UnansweredRequests::Pass,
        WebhookAnswer::Accepted | WebhookAnswer::Unanswered(_) => UnansweredRequests::Pass,
    };
    let image = args.image.as_deref();
    let edits = webhook::values(resolver, image, unanswered).await?;
    plan_builtin(resolver, WEBHOOK, edits).await
}

/// Plans a built-in add-on as a core add-on. Every upgrade repairs it, so the plan includes whatever differs in the cluster (semantics
/// 12.1).
async fn plan_builtin(resolver: &Resolver<'_>, addon: &str, edits: Edits) -> Result<Plan> {
    let new = NewInstallation {
        addon: VersionedName::parse(addon),
        core: true,
        edits,
        ..NewInstallation::default()
    };
    let intent = Intent::Install(vec![new]);
    let resolution = resolver.resolve(&intent, &Default::default()).await?;
    // kubectl may have applied the objects before.
    let choices = Choices {
        adopt: true,
        ..Choices::default()
    };
    let plan = resolver.plan(resolution.whole()?, &choices).await?;
    Ok(plan.whole()?)
}

async fn execute(session: &Session, plan: Plan, args: &InitArgs) -> Result<Exit> {
    if plan.is_empty() {
        return Ok(Exit::Done);
    }
    change::execute_confirmed(session, plan, &args.run, true).await
}

fn builtin_offer() -> Offer {
    Offer::Indexes(vec![IndexLocation::builtin()])
}

/// Checks that no other namespace was asked for, because the manifests name theirs.
fn check_namespaces(session: &Session) -> Result<(), UsageError> {
    let settings = session.ctx().settings();
    let asked = settings.namespace.iter();
    let mut namespaces = asked.chain([&settings.system_namespace]);
    match namespaces.find(|namespace| *namespace != SYSTEM_NAMESPACE) {
        Some(other) => Err(UsageError(format!(
            "namespace {other}: the webhook and the policies are installed into {SYSTEM_NAMESPACE}; elsewhere, change the \
             files in deploy/ and apply them"
        ))),
        None => Ok(()),
    }
}
