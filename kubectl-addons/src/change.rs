//! Announces a plan, asks for confirmation, executes the plan and reports.

use std::borrow::Cow;
use std::sync::Arc;

use addons_engine::{Back, EngineError, OperationStage, Report, StepEnd};
use addons_operation::error::OutsideWindow;
use addons_operation::execute::execute as execute_plan;
use addons_operation::plan::ask_about_removals;
use addons_operation::windows;
use addons_operation::{
    InstallationOutcome, Interruption, OperationError, Plan, PlannedInstallation, health,
};
use addons_plan::standing::object::ObjectHealth;
use addons_plan::{InstallationPlan, Verb};
use anyhow::Result;
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;

use crate::cli::operation::{ChangeArgs, DryRunMode, RunArgs};
use crate::exit::{Exit, exit_of_report, exit_with_skipped, exit_without_skipped};
use crate::failure;
use crate::interrupt::{SignalReceiver, WritingGuard};
use crate::output::{self, of_cluster};
use crate::progress::ShownFailures;
use crate::prompt::confirm;
use crate::refusal::AnnouncedRefusal;
use crate::session::Session;
use crate::words::{dry_run as told, hint, plan as words, typed};
use crate::{again, choices, events};

/// The last line of a dry run.
pub const UNCHANGED: &str = "dry run: nothing was changed";
/// What the report says of a failure whose message was already shown.
const SEE_ABOVE: &str = "see above";

/// Refuses `--recreate` for an object that the plan does not recreate. For a command that runs beside others this is only a note,
/// because another one may need it.
///
/// # Errors
/// The plan does not recreate a named object.
pub fn check_named(session: &Session, plan: &Plan) -> Result<()> {
    match (plan.check_named(), session.turn()) {
        (Err(needless), Some(_)) => output::note(&needless.to_string()),
        (checked, _) => checked.map_err(OperationError::from)?,
    }
    Ok(())
}

/// Announces what is due, asks and executes it. `--dry-run` only announces.
///
/// # Errors
/// Nothing was written: the user declined, there is no terminal to ask on, or the CRDs are missing.
pub async fn run(session: &Session, plan: Plan, change: &ChangeArgs) -> Result<Exit> {
    report_up_to_date(session, &plan).await?;
    if plan.is_empty() {
        // Its caller may also wait for installations that are up to date.
        if let Some(turn) = session
            .turn()
            .filter(|_| change.dry_run == DryRunMode::None)
        {
            turn.wait_for_turn(&plan).await?;
        }
        return Ok(Exit::Done);
    }
    check_defined(&plan, change.no_init)?;
    if change.dry_run != DryRunMode::None {
        return show_dry_run(session, plan, change.dry_run).await;
    }
    if let Err(refusal) = plan.check_breakages() {
        announce(session, &plan);
        return Err(AnnouncedRefusal::wrap(refusal));
    }
    execute(session, plan, &change.run, !change.no_init).await
}

/// Announces a plan, asks, executes it, and reports. The exit code is that of the worst outcome (semantics 17.5). A failure stops only what
/// comes after it in the order. `define` says that the CRDs may be installed.
///
/// Nothing was written: the user declined, there is no terminal to ask on, or the CRDs are missing. Or the user pressed Ctrl-C while helm
/// was running.
pub async fn execute(session: &Session, plan: Plan, run: &RunArgs, define: bool) -> Result<Exit> {
    announce(session, &plan);
    execute_announced(session, plan, run, define).await
}

/// Asks about a plan that was announced, executes it and reports.
///
/// # Errors
/// As [`execute`].
pub async fn execute_announced(
    session: &Session,
    plan: Plan,
    run: &RunArgs,
    define: bool,
) -> Result<Exit> {
    plan.check_refusals().map_err(AnnouncedRefusal::wrap)?;
    let plan = accept_migrations(plan, run.yes)?;
    let plan = accept_recreations(plan, run.yes)?;
    accept_closed_window(session, &plan, run).await?;
    match session.turn() {
        Some(turn) => {
            turn.wait_for_turn(&plan).await?;
            // Its wave may begin hours later.
            accept_closed_window(session, &plan, run).await?;
        }
        None if run.yes => {}
        None => confirm(confirmation_question(&plan))?,
    }
    execute_confirmed(session, plan, run, define).await
}

/// Executes a plan that was announced and confirmed, and reports. `define` says that the CRDs may be installed.
///
/// # Errors
/// Nothing was written: the CRDs are missing. Or the user pressed Ctrl-C while helm was running.
pub async fn execute_confirmed(
    session: &Session,
    plan: Plan,
    run: &RunArgs,
    define: bool,
) -> Result<Exit> {
    let plan = Arc::new(plan);
    let work = run_interruptible(async |interruption| {
        let done = execute_until(session, &plan, run, define, interruption).await;
        done.inspect_err(|error| {
            if matches!(error, OperationError::Interrupted(_)) {
                print_continuation(&plan, interruption);
            }
        })
    });
    let (exit, _) = work.await?;
    Ok(exit)
}

/// Prints how to continue an interrupted plan.
fn print_continuation(plan: &Plan, interruption: &Interruption) {
    let stage = |planned: &PlannedInstallation| interruption.stage(&planned.plan.installation);
    // No record has the typed values yet.
    let is_open = |planned: &PlannedInstallation| {
        let is_new = matches!(planned.plan.verb, Verb::Install | Verb::Adopt);
        is_new && stage(planned).is_none()
    };
    if plan.installations.iter().any(is_open) {
        return output::note(&format!("continue: {}", typed::same_command()));
    }
    let mut told = Vec::new();
    for planned in &plan.installations {
        let again = words::continue_command(&planned.plan, &plan.choices);
        if stage(planned) == Some(OperationStage::Done) || told.contains(&again) {
            continue;
        }
        output::note(&format!("continue: {again}"));
        told.push(again);
        if let Some(back) = words::atomic::rollback_command(planned, &plan.choices) {
            output::note(&format!("go back:  {back}"));
        }
    }
}

/// The report of each installation.
pub type InstallationReports = Vec<(InstallationName, Report)>;

/// Executes a plan as part of a longer operation with its own interruption.
///
/// # Errors
/// As [`execute_confirmed`].
pub async fn execute_until(
    session: &Session,
    plan: &Arc<Plan>,
    run: &RunArgs,
    define: bool,
    interruption: &Interruption,
) -> Result<(Exit, InstallationReports), OperationError> {
    let how = choices::parse_run(run, define);
    let display = &session.display;
    display.begin(plan, is_brief(session, plan), run.timeout);
    let outcomes = execute_plan(session.ctx(), plan, &how, interruption).await;
    let shown = display.end();
    let outcomes = again::check_outcomes(outcomes?).map_err(|error| *error)?;
    Ok(report_outcomes(plan, outcomes, &shown, run.wait))
}

/// Runs work that writes and that Ctrl-C interrupts in an orderly way.
pub async fn run_interruptible<T>(work: impl AsyncFnOnce(&Interruption) -> T) -> T {
    let interruption = Interruption::default();
    let (writing, asked) = WritingGuard::begin();
    let listening = of_cluster::spawn_labelled(forward_signals(asked, interruption.clone()));
    let done = work(&interruption).await;
    listening.abort();
    drop(writing);
    done
}

/// Interrupts the operation on the first Ctrl-C or SIGTERM: helm may finish, and the locks are released. Stops it at once on the second.
async fn forward_signals(mut asked: SignalReceiver, interruption: Interruption) {
    asked.next().await;
    output::note("interrupted; ending the operation (press Ctrl-C again to stop at once)");
    interruption.interrupt();
    asked.next().await;
    interruption.force();
}

fn report_outcomes(
    plan: &Plan,
    outcomes: Vec<InstallationOutcome>,
    shown: &ShownFailures,
    waited: bool,
) -> (Exit, InstallationReports) {
    let mut worst = Exit::Done;
    let mut skipped = false;
    let mut reports = Vec::new();
    let planned = plan.installations.iter().enumerate();
    for ((part, planned), outcome) in planned.zip(outcomes) {
        let exit = match outcome.result {
            Ok(report) => {
                let told = match shown.is_empty() {
                    true => Cow::Borrowed(&report),
                    false => Cow::Owned(refer_to_shown(&report, part, shown)),
                };
                let text = words::describe_report(planned, &plan.choices, &told, waited);
                output::note(text.trim_end());
                events::emit_reported(&planned.plan, Some(&report), exit_of_report(&report));
                skipped |= report.skipped().next().is_some();
                let record = planned.plan.annotation();
                if report.is_done() && record.is_some_and(|record| record.after.is_some()) {
                    // In the words of the tool that reads the record.
                    output::note(&format!("Updated {:?}", planned.plan.addon));
                }
                let exit = exit_without_skipped(&report);
                reports.push((outcome.installation, report));
                exit
            }
            Err(error) => {
                let error = anyhow::Error::from(error);
                let exit = failure::report_failure(&error);
                events::emit_reported(&planned.plan, None, exit);
                exit
            }
        };
        worst = worst.max(exit);
    }
    (exit_with_skipped(worst, skipped), reports)
}

/// Returns the report without the messages of failures that were shown when they happened.
fn refer_to_shown(report: &Report, part: usize, shown: &ShownFailures) -> Report {
    let mut report = report.clone();
    for step in &mut report.ended {
        if let StepEnd::Failed(failure) = &mut step.end
            && shown.contains(&(part, failure.key.clone()))
        {
            SEE_ABOVE.clone_into(&mut failure.message);
        }
    }
    if let Some(Back::Executed(back)) = &mut report.back {
        **back = refer_to_shown(back, part, shown);
    }
    report
}

/// Names the installations that are up to date, and warns about those that are not healthy, because an upgrade restores edited or deleted
/// objects only on request.
///
/// # Errors
/// The server cannot be reached.
pub async fn report_up_to_date(session: &Session, plan: &Plan) -> Result<()> {
    events::emit_up_to_date(plan);
    for resolved in &plan.up_to_date {
        // The installed version may be newer than that of the chosen entry.
        let existing = resolved.existing.as_ref();
        let label = match existing.and_then(AddonInstallation::installed) {
            Some(installed) => words::version_label(installed),
            None => words::version_label(&resolved.target(&Default::default())),
        };
        output::note(&format!("{}  {label}  nothing to do", resolved.name.name));
    }
    let records = plan.up_to_date.iter().filter_map(|it| it.existing.as_ref());
    let records: Vec<&AddonInstallation> = records.collect();
    if records.is_empty() {
        return Ok(());
    }
    // With several installations, kinds that the caller may not list in all namespaces are unknown, and not reported.
    let by_namespace = records.len() == 1;
    let troubles = health::find_troubles(session.cluster().await?, &records, by_namespace).await?;
    for record in records {
        let Some(health) = troubles.get(&health::owner_of(record)) else {
            continue;
        };
        if !health.objects.iter().any(ObjectHealth::is_trouble) {
            continue;
        }
        let state = health::installation_state(session.ctx(), record, health, None).await?;
        let name = record.metadata.name.as_deref().unwrap_or_default();
        let namespace = record.metadata.namespace.as_deref();
        let mut troubles = health.objects.iter().filter(|one| one.is_trouble());
        let lines = if troubles.any(ObjectHealth::is_restorable) {
            hint::fix_line(&hint::restore_command(record))
        } else {
            let namespace = namespace.unwrap_or_default();
            hint::look_line(&format!("kubectl addons status {name} -n {namespace}"))
        };
        output::warn(&format!("{name} is {state}{}", hint::indent_lines(&lines)));
    }
    Ok(())
}

/// Shows what is due without asking. The caller says why.
///
/// # Errors
/// The server refuses something, or the user has not accepted what the plan needs.
pub async fn propose(session: &Session, plan: &Plan) -> Result<()> {
    report_up_to_date(session, plan).await?;
    announce(session, plan);
    plan.check().map_err(AnnouncedRefusal::wrap)
}

/// Whether each installation gets a single line: on a terminal with several installations and without `-v`.
fn is_brief(session: &Session, plan: &Plan) -> bool {
    output::can_move_cursor() && session.global().verbosity == 0 && plan.installations.len() > 1
}

/// Shows what a plan will do.
pub fn announce(session: &Session, plan: &Plan) {
    announce_with(session, plan, told::describe_unjudged);
}

/// Shows what a plan will do. `unjudged` describes the writes that the server could not judge.
fn announce_with(session: &Session, plan: &Plan, unjudged: fn(&InstallationPlan) -> String) {
    events::emit_planned(plan);
    let text = words::describe_preparation(plan);
    if !text.is_empty() {
        output::note(text.trim_end());
    }
    if is_brief(session, plan) {
        return output::note(words::brief::describe_briefly(plan, unjudged).trim_end());
    }
    for (planned, text) in plan.installations.iter().zip(words::describe_plans(plan)) {
        let unjudged = unjudged(&planned.plan);
        output::note(format!("{text}{unjudged}").trim_end());
    }
}

/// Announces a plan without executing it, as `--dry-run` says.
///
/// # Errors
/// The server cannot be reached or refuses a write, or the user has not accepted what the plan needs.
pub async fn show_dry_run(session: &Session, mut plan: Plan, mode: DryRunMode) -> Result<Exit> {
    if mode == DryRunMode::Server {
        ask_about_removals(session.ctx(), &mut plan).await?;
        announce_with(session, &plan, told::describe_unchecked);
    } else {
        announce(session, &plan);
    }
    report_closed_window(session, &plan).await?;
    conclude_preview(&plan)
}

/// Announces a plan without executing it.
///
/// # Errors
/// Those with which [`execute`] would refuse the plan before the first write.
pub async fn preview(session: &Session, plan: &Plan) -> Result<Exit> {
    announce(session, plan);
    report_closed_window(session, plan).await?;
    conclude_preview(plan)
}

/// Says that nothing was changed, and refuses what the operation would refuse.
///
/// # Errors
/// As [`preview`].
pub fn conclude_preview(plan: &Plan) -> Result<Exit> {
    output::note(UNCHANGED);
    plan.check().map_err(AnnouncedRefusal::wrap)?;
    Ok(Exit::Done)
}

/// Refuses a plan that needs our CustomResourceDefinitions if these are missing and may not be installed.
///
/// # Errors
/// [`EngineError::NotInitialised`].
pub fn check_defined(plan: &Plan, no_init: bool) -> Result<()> {
    match plan.defines && no_init {
        true => Err(EngineError::NotInitialised.into()),
        false => Ok(()),
    }
}

/// Asks whether to begin outside the maintenance windows of policies. Without a terminal, the plan is refused.
///
/// # Errors
/// The user did not accept it; policies cannot be read.
pub async fn accept_closed_window(session: &Session, plan: &Plan, run: &RunArgs) -> Result<()> {
    if run.outside_window {
        return Ok(());
    }
    let Some(outside) = find_closed_window(session, plan).await? else {
        return Ok(());
    };
    if run.yes || !output::can_ask() {
        return Err(AnnouncedRefusal::wrap(OperationError::from(outside)));
    }
    output::warn(&outside.to_string());
    confirm("Begin outside the maintenance windows? [y/N] ")?;
    Ok(())
}

/// Says that a plan would not begin now, for commands that only show it.
///
/// # Errors
/// The server cannot be reached.
pub async fn report_closed_window(session: &Session, plan: &Plan) -> Result<()> {
    if let Some(outside) = find_closed_window(session, plan).await? {
        output::warn(&outside.to_string());
    }
    Ok(())
}

/// Returns the change of a plan that may not begin now. A caller that may not list policies was warned of that.
async fn find_closed_window(session: &Session, plan: &Plan) -> Result<Option<Box<OutsideWindow>>> {
    match windows::check(session.ctx(), plan).await {
        Err(OperationError::OutsideWindow(outside)) => Ok(Some(outside)),
        Err(error) if error.is_forbidden() => Ok(None),
        checked => Ok(checked.map(|()| None)?),
    }
}

/// Asks whether to write objects again whose CRD drops their stored version. Without a terminal, the plan is refused.
fn accept_migrations(plan: Plan, yes: bool) -> Result<Plan> {
    let Err(refusal) = plan.check_migrations() else {
        return Ok(plan);
    };
    if yes || !output::can_ask() {
        return Err(AnnouncedRefusal::wrap(refusal));
    }
    confirm("Write these objects again and remove the version? [y/N] ")?;
    Ok(plan.accepting_migrations())
}

/// Asks whether to recreate objects that cannot be changed in place, and to delete pruned ones before the rest. Refused without a terminal,
/// and if they hold data.
fn accept_recreations(plan: Plan, yes: bool) -> Result<Plan> {
    let Err(refusal) = plan.check_recreations() else {
        return Ok(plan);
    };
    if yes || !refusal.is_acceptable() || !output::can_ask() {
        return Err(AnnouncedRefusal::wrap(refusal));
    }
    confirm(if refusal.deletes_holders() {
        "Delete these objects? [y/N] "
    } else {
        "Delete these objects and create them again? [y/N] "
    })?;
    Ok(plan.accepting_recreations())
}

fn confirmation_question(plan: &Plan) -> &'static str {
    match plan.installations.as_slice() {
        [one] if one.plan.verb == Verb::Install => "Install? [y/N] ",
        [one] if one.plan.verb == Verb::Upgrade => "Upgrade? [y/N] ",
        [one] if one.plan.verb == Verb::Rollback => "Roll back? [y/N] ",
        [one] if words::is_deleted_record(&one.plan) => "Restore? [y/N] ",
        [one] if one.plan.verb == Verb::Adopt => "Adopt? [y/N] ",
        [one] if one.plan.verb == Verb::Uninstall => "Uninstall? [y/N] ",
        [one] if one.plan.verb == Verb::Release => "Release? [y/N] ",
        _ => "Continue? [y/N] ",
    }
}
