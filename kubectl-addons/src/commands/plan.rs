//! `plan [NAME[@VERSION]…] -o FILE`: what install and upgrade would do, for review and for `apply FILE`.

use std::path::Path;

use addons_operation::plan::compare;
use addons_operation::{Choices, Intent, Resolver};
use anyhow::{Context as _, Result};
use common::plan::file::{self, ClusterPlan, FleetPlan, PlanFile};
use common::plan::graph::draw;
use serde::Serialize;

use crate::cli::plan::{Drawing, Plan, PlanOutput};
use crate::exit::Exit;
use crate::fleet::Fleet;
use crate::output::{self, of_cluster};
use crate::session::Session;
use crate::usage::Usage;
use crate::words::dry_run as told;
use crate::words::plan as words;
use crate::{change, choices, partial};

/// A plan, and what is said of it.
struct Made {
    plan: addons_operation::Plan,
    text: String,
    file: PlanFile,
    /// 1 where the server refuses an object; the code of what was left out.
    exit: Exit,
}

/// Plans, announces, and writes the plan. Exit code 1 where the server refuses an object: then the plan would fail.
///
/// # Errors
/// There is no plan; or it cannot be written.
pub async fn run(session: &Session, args: &Plan) -> Result<Exit> {
    let made = make(session, args).await?;
    match &args.output {
        PlanOutput::Text => output::data(&made.text),
        PlanOutput::Print(format) => {
            output::note(made.text.trim_end());
            output::value(&file::write(&made.file)?.0, *format)?;
        }
        PlanOutput::Draw(_) if made.plan.is_empty() => {
            output::note("nothing to draw: the plan is empty");
        }
        PlanOutput::Draw(drawing) => output::data(&drawn(&made.plan, *drawing)),
        PlanOutput::File(path) => {
            output::note(made.text.trim_end());
            write(&made.file, path)?;
        }
    }
    Ok(made.exit)
}

/// The same for every cluster of a fleet, in one file; a cluster that cannot be planned fails alone and is left out of it.
///
/// # Errors
/// The plan cannot be written.
pub async fn of_fleet(fleet: &Fleet, args: &Plan) -> Result<Exit> {
    if let PlanOutput::Draw(_) = args.output {
        return Err(Usage("-o dot and -o mermaid draw the plan of one cluster".to_owned()).into());
    }
    let (mut found, failed) = fleet.each(async |session| make(session, args).await).await;
    let mut exit = failed;
    let mut clusters = Vec::new();
    for at in &fleet.members {
        let Some(made) = found.iter().position(|(name, _)| name == at.name()) else {
            continue;
        };
        let (name, made) = found.swap_remove(made);
        exit = exit.max(made.exit);
        match args.output {
            PlanOutput::Text => output::data(&format!("{name}:\n{}", made.text)),
            _ => of_cluster::run(&name, async { output::note(made.text.trim_end()) }).await,
        }
        let (at, plan) = (at.clone(), made.file);
        clusters.push(ClusterPlan { at, plan });
    }
    if clusters.is_empty() {
        return Ok(exit);
    }
    let plan = FleetPlan::new(clusters);
    match &args.output {
        PlanOutput::Print(format) => output::value(&file::write(&plan)?.0, *format)?,
        PlanOutput::File(path) => write(&plan, path)?,
        PlanOutput::Text | PlanOutput::Draw(_) => {}
    }
    Ok(exit)
}

async fn make(session: &Session, args: &Plan) -> Result<Made> {
    let named = choices::installations(&args.addons, &args.new, &args.values)?;
    // What is kept of discovery between runs may be older than the plan.
    session.cluster().await?.forget_kinds().await;
    let resolver = Resolver::new(session.ctx(), choices::offer(&args.source)).await?;
    let edits = choices::edits(&args.values)?;
    let intent = Intent::InstallOrUpgrade { named, edits };
    let resolution = resolver.resolve(&intent, &Default::default()).await?;
    let choices = Choices {
        repair: args.due.repair,
        allow_downgrade: args.due.allow_downgrade,
        ..choices::choices(args.accept, args.delete, &args.differences)
    };
    let is_named = !args.addons.is_empty();
    let (plan, failed) = partial::plan(&resolver, resolution, &choices, is_named).await?;
    change::up_to_date(&plan);
    plan.check_breakages()?;
    plan.check_migrations()?;
    let mut text = words::first(&plan);
    let mut exit = Exit::Done;
    let mut changes = Vec::new();
    let is_drawn = matches!(args.output, PlanOutput::Draw(_));
    let announced = plan.installations.iter().zip(words::plans(&plan));
    for (planned, announced) in announced.filter(|_| !is_drawn) {
        let mut found = compare(session.ctx(), planned).await?;
        text.push_str(&announced);
        for change in &found {
            let is_told = planned.plan.recreation(&change.key).is_some();
            exit = exit.max(if change.error.is_some() {
                Exit::Failed
            } else {
                Exit::Done
            });
            if let Some(error) = change.error.as_ref().filter(|_| !is_told) {
                text.push_str(&format!("  refused   {}: {error}\n", change.key));
            }
        }
        text.push_str(&told::unchecked(&found));
        found.sort_by(|one, other| one.key.cmp(&other.key));
        changes.extend(found);
    }
    Ok(Made {
        file: plan.file(session.ctx(), changes).await?,
        plan,
        text,
        exit: exit.max(partial::report(failed)),
    })
}

fn drawn(plan: &addons_operation::Plan, drawing: Drawing) -> String {
    let installations = plan.installations.iter();
    let names: Vec<&str> = installations
        .map(|planned| planned.plan.installation.name.as_str())
        .collect();
    match drawing {
        Drawing::Dot => draw::to_dot(&plan.graph, &names),
        Drawing::Mermaid => draw::to_mermaid(&plan.graph, &names),
    }
}

fn write(plan: &impl Serialize, path: &Path) -> Result<()> {
    let name = path.display();
    let (value, digest) = file::write(plan)?;
    let mut bytes = serde_json::to_vec_pretty(&value)?;
    bytes.push(b'\n');
    if bytes.len() > file::LARGEST {
        return Err(
            anyhow::Error::from(file::FileError::TooLarge).context(format!("plan file {name}"))
        );
    }
    // A file that was cut off is found out by its digest.
    std::fs::write(path, bytes).with_context(|| format!("cannot write the plan file {name}"))?;
    output::note(&format!(
        "plan written to {name} ({digest})\n  run: kubectl addons apply {name}"
    ));
    Ok(())
}
