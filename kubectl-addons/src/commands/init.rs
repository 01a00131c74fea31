//! `init`: our definitions, installations that older versions kept in other places, and the admission that was asked for.

mod builtin;

use addons_engine::webhooks::Answer;
use addons_operation::builtin::webhook;
use addons_operation::definitions;
use addons_operation::transfer::{self, Candidate};
use addons_operation::{Records, name_of};
use anyhow::Result;
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;

use crate::change::{Declined, confirm, interruptible, of_failures};
use crate::cli::reading::Init;
use crate::exit::Exit;
use crate::session::Session;
use crate::usage::Usage;
use crate::{output, words};

/// Installs the definitions, or updates older ones; then the webhook and the policies where these were asked for; then it moves
/// installations of older versions, each only if the user agrees to it.
///
/// # Errors
/// What the server refuses.
pub async fn run(session: &Session, args: &Init) -> Result<Exit> {
    let has_parts = args.webhook || args.policies;
    if args.dry_run {
        if !has_parts {
            return Err(Usage(
                "--dry-run can only be used with --webhook and --policies".to_owned(),
            )
            .into());
        }
        return builtin::run(session, args).await;
    }
    for (definition, done) in definitions::install(session.ctx()).await? {
        output::note(&words::definition(&definition, &done));
    }
    let mut worst = Exit::Done;
    if has_parts {
        worst = builtin::run(session, args).await?;
    } else {
        // Plain init says that nothing is enforced yet (semantics 17).
        let answer = webhook::ask(session.ctx()).await;
        output::note(if matches!(answer, Ok(Answer::Denied)) {
            "the definitions are served, and the webhook enforces the rules"
        } else {
            "the definitions are served; nothing is enforced yet, for no admission webhook was installed"
        });
    }
    let records = match Records::read(session.ctx()).await {
        // Who may only install definitions is not told of installations.
        Err(error) if error.is_forbidden() && args.moves.is_empty() => return Ok(worst),
        other => other?,
    };
    let found = transfer::find(session.ctx(), &records).await?;
    let is_found = |name: &&InstallationName| found.iter().any(|one| name_of(one) == **name);
    if let Some(unknown) = args.moves.iter().find(|name| !is_found(name)) {
        return Err(Usage(format!(
            "--move {unknown}: there is no installation of an index or directory that could be moved"
        ))
        .into());
    }
    for record in found {
        let is_named = args.moves.contains(&name_of(record));
        let exit = match one(session, &records, record, is_named).await {
            Ok(exit) => exit,
            // What was not asked for may stay as it is.
            Err(error) => match output::failure(&error) {
                Exit::Interrupted => return Ok(Exit::Interrupted),
                exit if is_named => exit,
                _ => Exit::Done,
            },
        };
        worst = worst.max(exit);
    }
    Ok(worst)
}

async fn one(
    session: &Session,
    records: &Records,
    record: &AddonInstallation,
    is_named: bool,
) -> Result<Exit> {
    output::note(&words::transfer::record(record));
    let is_begun = transfer::is_begun(record, records);
    if !is_named && !output::can_ask() && !is_begun {
        output::note(&words::transfer::how(&name_of(record)));
        return Ok(Exit::Done);
    }
    let candidate = transfer::judge(session.ctx(), record).await?;
    output::note(&words::transfer::candidate(&candidate));
    let is_agreed = is_named || candidate.is_begun;
    if !is_agreed
        && let Err(Declined::No | Declined::NoTerminal) = confirm(words::transfer::QUESTION)
    {
        output::note(&words::transfer::declined(&candidate));
        return Ok(Exit::Done);
    }
    run_move(session, &candidate).await
}

async fn run_move(session: &Session, candidate: &Candidate) -> Result<Exit> {
    let done = interruptible(async |interruption| {
        transfer::run(session.ctx(), candidate, interruption).await
    });
    let done = done.await?;
    output::note(&words::transfer::done(candidate, &done));
    Ok(of_failures(&done.failed))
}
