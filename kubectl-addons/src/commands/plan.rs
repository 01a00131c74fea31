//! `plan [NAME[@VERSION]…] -o FILE`: what install and upgrade would do, for review and for `apply FILE`.

use std::path::Path;

use addons_engine::{diff, identity};
use anyhow::{Context as _, Result};
use common::api::names::{API_VERSION, CLIENT};
use common::plan::changes::ObjectDiff;
use common::plan::file::{self, Built, ClusterFacts, PlanFile, PlannedInstallation};
use common::plan::graph::{Graph, draw};

use crate::cli::plan::{Drawing, Plan, PlanOutput};
use crate::exit::Exit;
use crate::operation::announce;
use crate::operation::candidate::Candidate;
use crate::operation::pipeline::Pipeline;
use crate::operation::prepare::Prepared;
use crate::operation::together::{Flags, Planned};
use crate::operation::{differences, run};
use crate::output;
use crate::session::Session;
use crate::usage::Usage;

use super::diff::candidates;

/// Plans, announces, and writes the plan. Exit code 1 where the server refuses an object: then the plan would fail.
///
/// # Errors
/// There is no plan; or it cannot be written.
pub async fn run(session: &Session, args: &Plan) -> Result<Exit> {
    if args.new.name.is_some() && args.addons.len() != 1 {
        return Err(Usage("--name goes with one add-on only".to_owned()).into());
    }
    let cluster = session.cluster().await?;
    // What is kept of discovery between runs may be older than the plan.
    cluster.forget_kinds().await;
    let pipeline = Pipeline::new(session, &args.source).await?;
    let wanted = args.new.wanted();
    let mut candidates = candidates(&pipeline, session, &args.addons, wanted, &args.values).await?;
    candidates.retain(|candidate| {
        let record = candidate.existing.as_ref();
        let suspended = record.is_some_and(|record| record.spec.suspend);
        if suspended {
            output::note(&format!("{} is suspended", candidate.name.name));
        }
        !suspended
    });
    let flags = Flags {
        repair: args.repair,
        allow_downgrade: args.allow_downgrade,
        allow_prune: args.accept.allow_prune,
        delete: args.delete,
        wait_for_types: None,
    };
    differences::say(&mut candidates, &args.differences);
    let mut plan = PlanFile {
        api_version: API_VERSION.to_owned(),
        kind: file::KIND.to_owned(),
        tool: format!("{CLIENT} {}", env!("CARGO_PKG_VERSION")),
        cluster: facts(session).await?,
        flags: recorded(flags, args),
        installations: Vec::new(),
    };
    let mut text = String::new();
    let mut exit = Exit::Done;
    let (planned, mut prepared) = due(pipeline.plan(candidates, flags).await?)?;
    let plans = prepared.iter_mut().map(|prepared| &mut prepared.plan);
    differences::allow(plans, &args.differences.recreate)?;
    run::refuse_breakages(&prepared, args.accept)?;
    let graph = run::graph(&prepared)?;
    if let PlanOutput::Draw(drawing) = args.output {
        output::data(&drawn(&graph, &prepared, drawing));
        return Ok(Exit::Done);
    }
    let texts = announce::plans(&prepared, &graph);
    for ((candidate, prepared), announced) in planned.iter().zip(&prepared).zip(texts) {
        let changes = diff::diff(cluster, &prepared.plan).await?;
        text.push_str(&announced);
        for change in &changes {
            if let Some(error) = &change.error {
                text.push_str(&format!("  refused   {}: {error}\n", change.key));
                exit = Exit::Failed;
            }
        }
        plan.installations
            .push(self::planned(candidate, prepared, &changes));
    }
    match &args.output {
        PlanOutput::Text => output::data(&text),
        PlanOutput::Print(format) => {
            output::note(text.trim_end());
            output::value(&file::write(&plan)?.0, *format)?;
        }
        PlanOutput::Draw(_) => {}
        PlanOutput::File(path) => {
            output::note(text.trim_end());
            write(&plan, path)?;
        }
    }
    Ok(exit)
}

/// What a plan file holds of a candidate.
pub fn planned(
    candidate: &Candidate,
    prepared: &Prepared,
    changes: &[ObjectDiff],
) -> PlannedInstallation {
    file::installation(&Built {
        plan: &prepared.plan,
        wanted: &prepared.record,
        existing: candidate.existing.as_ref(),
        entry: &candidate.entry,
        snapshot: &prepared.basis.snapshot,
        kinds: &prepared.basis.kinds,
        changes,
    })
}

/// The cluster that is asked.
///
/// # Errors
/// Those of the requests.
pub async fn facts(session: &Session) -> Result<ClusterFacts> {
    let cluster = session.cluster().await?;
    Ok(ClusterFacts {
        kube_system_uid: identity::cluster_uid(cluster).await?,
        version: cluster.kubernetes_version().await?,
    })
}

/// The candidates that something is due for, and their plans; the others are told.
fn due(planned: Vec<Planned>) -> Result<(Vec<Candidate>, Vec<Prepared>)> {
    let mut due = (Vec::new(), Vec::new());
    for (candidate, outcome) in planned {
        if let Some(prepared) = outcome? {
            due.0.push(candidate);
            due.1.push(prepared);
        } else {
            let label = announce::label(&candidate.target());
            output::note(&format!("{}  {label}  nothing to do", candidate.name.name));
        }
    }
    Ok(due)
}

fn drawn(graph: &Graph, prepared: &[Prepared], drawing: Drawing) -> String {
    let names = prepared
        .iter()
        .map(|item| item.plan.installation.name.as_str());
    let names: Vec<&str> = names.collect();
    match drawing {
        Drawing::Dot => draw::to_dot(graph, &names),
        Drawing::Mermaid => draw::to_mermaid(graph, &names),
    }
}

/// Every flag by name: a new one does not compile until it is recorded.
fn recorded(flags: Flags, args: &Plan) -> file::Flags {
    let Flags {
        repair,
        allow_downgrade,
        allow_prune,
        delete,
        wait_for_types: _,
    } = flags;
    file::Flags {
        repair,
        allow_downgrade,
        allow_prune,
        delete: delete.kinds(),
        allow_crd_breakage: args.accept.allow_crd_breakage,
        recreate: args.differences.recreate.clone(),
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
