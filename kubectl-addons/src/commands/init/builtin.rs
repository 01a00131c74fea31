//! `init --webhook --policies`: installs the add-ons that are built into this program.

use addons_engine::webhooks::Answer;
use addons_operation::builtin::rights;
use addons_operation::builtin::webhook::{self, Unanswered};
use addons_operation::builtin::{POLICIES, WEBHOOK};
use addons_operation::{
    Choices, Edits, Index, Intent, NewInstallation, Offer, Plan, Resolver, Target,
};
use anyhow::Result;
use common::api::names::SYSTEM_NAMESPACE;

use crate::change::{self, UNCHANGED};
use crate::cli::reading::Init;
use crate::exit::Exit;
use crate::session::Session;
use crate::usage::Usage;
use crate::words::typed;
use crate::{again, output};

/// The message if the webhook denies what it must.
const REQUIRED: &str =
    "the webhook denies what it must, and is required from now on (failurePolicy Fail)";

/// The message if the webhook does not deny in time.
const UNJUDGED: &str = "the webhook does not deny a request that it must deny, and what it does not answer passes (failurePolicy Ignore)";

/// Installs or upgrades what the flags name, and restores edited or deleted objects. Until the webhook was seen to deny, its failurePolicy
/// is Ignore, also if an existing webhook stopped answering.
///
/// # Errors
/// Nothing was written: the user declined, or there is no terminal to ask on.
pub async fn run(session: &Session, args: &Init) -> Result<Exit> {
    check_namespaces(session)?;
    again::once_more(async || install(session, args).await).await
}

async fn install(session: &Session, args: &Init) -> Result<Exit> {
    let ctx = session.ctx();
    let resolver = Resolver::new(ctx, offer()).await?;
    let mut answer = Answer::Denied;
    let mut server = None;
    if args.webhook {
        answer = webhook::ask(ctx).await?;
        server = Some(server_plan(&resolver, args, &answer).await?);
    }
    let mut policies = None;
    if args.policies {
        policies = Some(plan(&resolver, POLICIES, Edits::default()).await?);
    }
    for plan in [&server, &policies].into_iter().flatten() {
        change::up_to_date(session, plan).await?;
        change::announce(session, plan);
    }
    // Name all missing permissions before the server refuses the first write.
    for plan in [&server, &policies].into_iter().flatten() {
        rights::check(ctx, plan).await?;
    }
    for plan in [&server, &policies].into_iter().flatten() {
        plan.check()?;
    }
    match &answer {
        Answer::Unanswered(why) => output::note(&format!(
            "{why}\nuntil the webhook denies again, what it should judge passes (failurePolicy Ignore)"
        )),
        Answer::Refused(why) => output::note(why),
        Answer::Denied | Answer::Accepted => {}
    }
    if args.dry_run {
        output::note(UNCHANGED);
        return Ok(Exit::Done);
    }
    let plans = [&server, &policies].into_iter().flatten();
    let is_planned = plans.filter(|plan| !plan.is_empty()).count() > 0;
    if (is_planned || answer != Answer::Denied) && !args.run.yes {
        change::confirm("Continue? [y/N] ")?;
    }
    if let Some(plan) = server {
        let was_required = webhook::is_required(&resolver);
        let exit = serve(session, args, plan, &answer, was_required).await?;
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
async fn serve(
    session: &Session,
    args: &Init,
    plan: Plan,
    answer: &Answer,
    was_required: bool,
) -> Result<Exit> {
    if matches!(answer, Answer::Unanswered(_)) {
        webhook::let_pass(session.ctx()).await?;
    }
    let exit = execute(session, plan, args).await?;
    if exit != Exit::Done {
        return Ok(exit);
    }
    if *answer == Answer::Denied {
        if !was_required {
            output::note(REQUIRED);
        }
        return Ok(exit);
    }
    let command = typed::again("kubectl addons init --webhook --yes");
    if !args.run.wait {
        if !matches!(answer, Answer::Refused(_)) {
            output::note(&format!(
                "the webhook judges, and what it does not answer passes (failurePolicy Ignore)\nfix:    {command}"
            ));
        }
        return Ok(Exit::Done);
    }
    let why = match webhook::wait(session.ctx(), args.run.timeout).await? {
        Answer::Denied => None,
        Answer::Refused(why) => Some(why),
        Answer::Accepted | Answer::Unanswered(_) => Some(UNJUDGED.to_owned()),
    };
    if let Some(why) = why {
        output::note(&format!(
            "{why}\nlook:   kubectl logs deployment/{WEBHOOK} -n {SYSTEM_NAMESPACE}\nfix:    {command}"
        ));
        return Ok(Exit::TimedOut);
    }
    let resolver = Resolver::new(session.ctx(), offer()).await?;
    let plan = server_plan(&resolver, args, &Answer::Denied).await?;
    let exit = execute(session, plan, args).await?;
    if exit == Exit::Done {
        output::note(REQUIRED);
    }
    Ok(exit)
}

async fn server_plan(resolver: &Resolver<'_>, args: &Init, answer: &Answer) -> Result<Plan> {
    let unanswered = match answer {
        Answer::Denied => Unanswered::Fail,
        // The webhook would also refuse the change of its own record.
        Answer::Refused(_) if webhook::is_required(resolver) => Unanswered::Fail,
        Answer::Refused(_) => Unanswered::Pass,
        Answer::Accepted | Answer::Unanswered(_) => Unanswered::Pass,
    };
    let image = args.image.as_deref();
    let edits = webhook::values(resolver, image, unanswered).await?;
    plan(resolver, WEBHOOK, edits).await
}

/// Plans a built-in add-on as a core add-on. Every upgrade repairs it, so the plan includes whatever differs in the cluster (semantics
/// 12.1).
async fn plan(resolver: &Resolver<'_>, addon: &str, edits: Edits) -> Result<Plan> {
    let new = NewInstallation {
        addon: Target::parse(addon),
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

async fn execute(session: &Session, plan: Plan, args: &Init) -> Result<Exit> {
    if plan.is_empty() {
        return Ok(Exit::Done);
    }
    change::carry_out(session, plan, &args.run, true).await
}

fn offer() -> Offer {
    Offer::Indexes(vec![Index::builtin()])
}

/// Checks that no other namespace was asked for, because the manifests name theirs.
fn check_namespaces(session: &Session) -> Result<(), Usage> {
    let settings = session.ctx().settings();
    let asked = settings.namespace.iter();
    let mut namespaces = asked.chain([&settings.system_namespace]);
    match namespaces.find(|namespace| *namespace != SYSTEM_NAMESPACE) {
        Some(other) => Err(Usage(format!(
            "namespace {other}: the webhook and the policies are installed into {SYSTEM_NAMESPACE}; elsewhere, change the \
             files in deploy/ and apply them"
        ))),
        None => Ok(()),
    }
}
