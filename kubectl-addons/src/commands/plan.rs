//! `plan [NAME[@VERSION]…] -o FILE`: what install and upgrade would do, for review and for `apply FILE`.

use std::path::Path;

use addons_operation::plan::compare;
use addons_operation::{Choices, Intent, Resolver};
use anyhow::{Context as _, Result};
use common::plan::file::{self, PlanFile};
use common::plan::graph::draw;

use crate::cli::plan::{Drawing, Plan, PlanOutput};
use crate::exit::Exit;
use crate::session::Session;
use crate::words::dry_run as told;
use crate::words::plan as words;
use crate::{change, choices, output, partial};

/// Plans, announces, and writes the plan. Exit code 1 where the server refuses an object: then the plan would fail.
///
/// # Errors
/// There is no plan; or it cannot be written.
pub async fn run(session: &Session, args: &Plan) -> Result<Exit> {
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
    if let PlanOutput::Draw(drawing) = args.output {
        if plan.is_empty() {
            output::note("nothing to draw: the plan is empty");
        } else {
            output::data(&drawn(&plan, drawing));
        }
        return Ok(partial::report(failed));
    }
    let mut text = words::first(&plan);
    let mut exit = Exit::Done;
    let mut changes = Vec::new();
    for (planned, announced) in plan.installations.iter().zip(words::plans(&plan)) {
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
    let file = plan.file(session.ctx(), changes).await?;
    match &args.output {
        PlanOutput::Text => output::data(&text),
        PlanOutput::Print(format) => {
            output::note(text.trim_end());
            output::value(&file::write(&file)?.0, *format)?;
        }
        PlanOutput::Draw(_) => {}
        PlanOutput::File(path) => {
            output::note(text.trim_end());
            write(&file, path)?;
        }
    }
    Ok(exit.max(partial::report(failed)))
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

fn write(plan: &PlanFile, path: &Path) -> Result<()> {
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
