//! `plan [NAME[@VERSION]…] -o FILE`: shows what install, upgrade, uninstall and `apply -f` would do, for review and for `apply FILE`.

use std::path::Path;

use addons_operation::plan::{UninstallRequest, plan_uninstall};
use addons_operation::stage::FailedInstallation;
use addons_operation::{Choices, Intent, Resolver};
use addons_plan::file::{self, PlanFile};
use addons_plan::graph::draw;
use anyhow::{Context as _, Result};
use serde::Serialize;

use super::review::{ShownPlan, markdown, page};
use super::set::{self, TypedSet};
use crate::cli::plan::{DrawingLanguage, PlanArgs, PlanOutput};
use crate::exit::{Exit, UsageError};
use crate::session::Session;
use crate::words::{dry_run as told, plan as words};
use crate::{change, choices, failure, output, partial};

/// A plan, with its description and its file.
pub(crate) struct MadePlan {
    pub(crate) plan: addons_operation::Plan,
    pub(crate) text: String,
    pub(crate) file: PlanFile,
    /// The exit code of what the server refuses, and of what was left out.
    pub(crate) exit: Exit,
}

impl MadePlan {
    /// Returns the plan for a page. `cluster`: its name, if there are several.
    pub(crate) fn shown<'a>(&'a self, cluster: Option<&'a str>) -> ShownPlan<'a> {
        ShownPlan {
            cluster,
            kubernetes: &self.file.cluster.version,
            plan: &self.plan,
        }
    }
}

/// The result of writing a plan.
pub(crate) struct WrittenPlan {
    pub(crate) exit: Exit,
    /// Whether no plan changes anything.
    pub(crate) is_empty: bool,
}

/// Makes, announces and writes the plan. If the server refuses a write, the exit code is that of the refusal, because the plan would fail.
///
/// # Errors
/// The plan cannot be made or written.
pub async fn run(session: &Session, args: &PlanArgs) -> Result<Exit> {
    exit_code(args, write_one(session, args).await)
}

/// Returns the exit code of a written plan, or with `--exit-code` that of a comparison (semantics 17.5).
///
/// # Errors
/// That of the plan.
pub(crate) fn exit_code(args: &PlanArgs, written: Result<WrittenPlan>) -> Result<Exit> {
    if !args.exit_code {
        return written.map(|written| written.exit);
    }
    Ok(match written {
        Ok(WrittenPlan {
            exit: Exit::Done,
            is_empty,
        }) => match is_empty {
            true => Exit::Done,
            false => Exit::Failed,
        },
        Ok(written) => written.exit.max(Exit::Usage),
        Err(error) => failure::report_failure(&error).max(Exit::Usage),
    })
}

async fn write_one(session: &Session, args: &PlanArgs) -> Result<WrittenPlan> {
    let made = make_plan(session, args).await?;
    match &args.output {
        PlanOutput::Text => output::print_painted(&made.text),
        PlanOutput::Print(format) => {
            output::note(made.text.trim_end());
            output::print_value(&file::write(&made.file)?.0, *format)?;
        }
        PlanOutput::Html => {
            output::print_bytes(page::render_page(&[made.shown(None)]).as_bytes());
        }
        PlanOutput::Markdown => {
            output::print_text(&markdown::render_markdown(&[made.shown(None)]));
        }
        PlanOutput::Draw(_) if made.plan.is_empty() => {
            output::note("nothing to draw: the plan is empty");
        }
        PlanOutput::Draw(drawing) => output::print_text(&draw_plan(&made.plan, *drawing)),
        PlanOutput::File(path) => {
            output::note(made.text.trim_end());
            write_file(&made.file, path)?;
        }
    }
    Ok(WrittenPlan {
        exit: made.exit,
        is_empty: made.plan.is_empty(),
    })
}

/// Makes the plan of a cluster.
///
/// # Errors
/// The plan cannot be made.
pub(crate) async fn make_plan(session: &Session, args: &PlanArgs) -> Result<MadePlan> {
    let set = set::read_typed(
        session,
        &args.set,
        (&args.values.values, &args.source),
        &args.addons,
    )?;
    // Cached discovery may be older than the plan.
    session.cluster().await?.forget_kinds().await;
    let resolver = Resolver::new(session.ctx(), choices::parse_offer(&args.source)).await?;
    let (mut plan, failed) = if args.uninstall {
        if args.addons.is_empty() && !args.all {
            return Err(UsageError("--uninstall requires names, or --all".to_owned()).into());
        }
        (plan_uninstall(&resolver, &removal(args)).await?, Vec::new())
    } else {
        plan_changes(&resolver, args, set).await?
    };
    plan.leave_rights_unchecked();
    change::check_named(session, &plan)?;
    change::report_up_to_date(session, &plan).await?;
    plan.check_breakages()?;
    plan.check_migrations()?;
    change::report_closed_window(session, &plan).await?;
    let mut text = words::describe_preparation(&plan);
    let is_drawn = matches!(args.output, PlanOutput::Draw(_));
    let exit = if is_drawn {
        Exit::Done
    } else {
        refusal_exit(&plan)
    };
    let announced = plan.installations.iter().zip(words::describe_plans(&plan));
    for (planned, announced) in announced.filter(|_| !is_drawn) {
        text.push_str(&announced);
        text.push_str(&told::describe_unchecked(&planned.plan));
    }
    Ok(MadePlan {
        file: plan.to_file(session.ctx()).await?,
        plan,
        text,
        exit: exit.max(partial::report_failed(failed)),
    })
}

/// Returns the exit code of what the server refuses of a plan, and of objects that have to be recreated first.
fn refusal_exit(plan: &addons_operation::Plan) -> Exit {
    match plan.check_refusals() {
        Ok(()) if plan.changes().iter().any(|it| it.error.is_some()) => Exit::Failed,
        Ok(()) => Exit::Done,
        Err(refusal) => Exit::from_cause(refusal.cause()),
    }
}

/// Plans what to install and upgrade, and which members to uninstall from a set.
async fn plan_changes(
    resolver: &Resolver<'_>,
    args: &PlanArgs,
    set: Option<TypedSet>,
) -> Result<(addons_operation::Plan, Vec<FailedInstallation>)> {
    let is_named = !args.addons.is_empty() || set.is_some();
    let place = set.as_ref().map(TypedSet::place);
    let intent = match set {
        Some(set) => Intent::Declared(set.into_declared(args.accept.allow_prune)),
        None => {
            let edits = choices::parse_changes(&args.values, &args.addons)?;
            let named = choices::parse_installations(&args.addons, &args.new, &edits)?;
            Intent::InstallOrUpgrade { named, edits }
        }
    };
    let resolution = resolver.resolve(&intent, &Default::default()).await?;
    let choices = Choices {
        repair: args.due.repair,
        allow_downgrade: args.due.allow_downgrade,
        ..choices::parse_choices(args.accept, args.delete, &args.differences)
    };
    partial::plan_partially(resolver, resolution, &choices, is_named, place.as_ref()).await
}

fn removal(args: &PlanArgs) -> UninstallRequest {
    UninstallRequest {
        names: args.addons.clone(),
        all: args.all,
        delete: args.delete.kinds(),
        force: args.accept.force,
        ..UninstallRequest::default()
    }
}

fn draw_plan(plan: &addons_operation::Plan, drawing: DrawingLanguage) -> String {
    let installations = plan.installations.iter();
    let names: Vec<&str> = installations
        .map(|planned| planned.plan.installation.name.as_str())
        .collect();
    match drawing {
        DrawingLanguage::Dot => draw::to_dot(&plan.graph, &names),
        DrawingLanguage::Mermaid => draw::to_mermaid(&plan.graph, &names),
    }
}

/// Writes a plan file, of one cluster or of several.
///
/// # Errors
/// The file is too large, or cannot be written.
pub(crate) fn write_file(plan: &impl Serialize, path: &Path) -> Result<()> {
    let name = path.display();
    let (value, digest) = file::write(plan)?;
    let mut bytes = serde_json::to_vec_pretty(&value)?;
    bytes.push(b'\n');
    if bytes.len() > file::LARGEST {
        return Err(
            anyhow::Error::from(file::FileError::TooLarge).context(format!("plan file {name}"))
        );
    }
    // Its digest detects a truncated file.
    std::fs::write(path, bytes).with_context(|| format!("cannot write the plan file {name}"))?;
    output::note(&format!(
        "plan written to {name} ({digest})\n  run: kubectl addons apply {name}"
    ));
    Ok(())
}
