//! `apply FILE`: plans again what a plan file says, compares, and does it where nothing moved since (semantics 17).

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use addons_engine::EngineError;
use anyhow::{Context as _, Result};
use common::catalogue::Origin;
use common::plan::file::{self, Difference, Moved, PlanFile, PlannedInstallation, RecordFacts};

use crate::cli::operation::{Accept, Source};
use crate::cli::plan::Apply;
use crate::definitions::Init;
use crate::exit::Exit;
use crate::operation::pipeline::Pipeline;
use crate::operation::prepare::Prepared;
use crate::operation::required_types::NotServed;
use crate::operation::together::Flags;
use crate::operation::verdict::Refused;
use crate::operation::{differences, run};
use crate::output;
use crate::session::Session;

use super::plan::{facts, planned};

/// Runs a plan file.
///
/// # Errors
/// It is none; something moved since it was made ([`Moved`], with all of it); those of install and upgrade.
pub async fn run(session: &Session, args: &Apply) -> Result<Exit> {
    let plan = read(&args.file)?;
    same_cluster(session, &plan).await?;
    if plan.installations.is_empty() {
        output::note("the plan holds nothing to do");
        return Ok(Exit::Done);
    }
    session.cluster().await?.forget_kinds().await;
    let source = source(&plan);
    let pipeline = Pipeline::new(session, &source).await?;
    let flags = Flags {
        wait_for_types: Some(args.run.timeout),
        ..flags(&plan.flags)
    };
    let prepared = plan_again(&pipeline, &plan, flags).await?;
    let accept = Accept {
        allow_crd_breakage: plan.flags.allow_crd_breakage,
        ..Accept::default()
    };
    run::refuse_breakages(&prepared, accept)?;
    let init = pipeline.known.uninitialised.then_some(Init {
        forbidden: args.no_init,
    });
    run::execute(session, &prepared, &args.run, init).await
}

fn read(path: &Path) -> Result<PlanFile> {
    let name = || format!("plan file {}", path.display());
    let mut bytes = Vec::new();
    // One byte more than allowed tells that there are too many.
    let limit = u64::try_from(file::LARGEST).unwrap_or(u64::MAX);
    File::open(path)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .with_context(name)?;
    file::read(&bytes).with_context(name)
}

/// Another cluster is the whole difference: nothing else could be the same.
async fn same_cluster(session: &Session, plan: &PlanFile) -> Result<()> {
    let now = facts(session).await?;
    let then = &plan.cluster;
    let what = if now.kube_system_uid != then.kube_system_uid {
        format!(
            "another cluster (kube-system has uid {}, the plan was made for {})",
            now.kube_system_uid, then.kube_system_uid
        )
    } else if now.version != then.version {
        format!(
            "Kubernetes {}, the plan was made for {}",
            now.version, then.version
        )
    } else {
        return Ok(());
    };
    Err(refusal(plan, vec![Difference::new("this cluster", what)]))
}

/// Where everything comes from one kind of place, the other is not asked.
fn source(plan: &PlanFile) -> Source {
    let locations = plan
        .installations
        .iter()
        .map(|planned| match &planned.entry.origin {
            Origin::Index { location } => Some(location.clone()),
            Origin::Catalogue { .. } => None,
        });
    let locations: Option<Vec<String>> = locations.collect();
    Source {
        channel: locations.and_then(|locations| locations.into_iter().next()),
        catalogue: None,
    }
}

/// The plans of the file as they are made now, where they are the same.
async fn plan_again(
    pipeline: &Pipeline<'_>,
    plan: &PlanFile,
    flags: Flags,
) -> Result<Vec<Prepared>> {
    let mut differences = Vec::new();
    let mut candidates = Vec::new();
    for then in &plan.installations {
        match pipeline.replay(then).await {
            Ok(candidate) => candidates.push(candidate),
            Err(error) => {
                differences.extend(moved_record(pipeline, then));
                differences.push(no_plan(then, error)?);
            }
        }
    }
    let mut prepared = Vec::new();
    let mut planned_now = pipeline.plan(candidates, flags).await?;
    let plans = planned_now.iter_mut().filter_map(|(_, outcome)| {
        let prepared = outcome.as_mut().ok()?.as_mut()?;
        Some(&mut prepared.plan)
    });
    if let Err(error) = differences::allow(plans, &plan.flags.recreate) {
        differences.push(Difference::new("--recreate", error.to_string()));
    }
    for (candidate, outcome) in planned_now {
        let mut installations = plan.installations.iter();
        let Some(then) = installations.find(|then| then.installation == candidate.name) else {
            continue;
        };
        match outcome {
            Ok(Some(now)) => {
                differences.extend(file::moved(then, &planned(&candidate, &now, &[])));
                prepared.push(now);
            }
            Ok(None) => {
                let subject = format!("installation {}", then.installation);
                differences.extend(moved_record(pipeline, then));
                differences.push(Difference::new(subject, "nothing is due any more"));
            }
            Err(error) => {
                differences.extend(moved_record(pipeline, then));
                differences.push(no_plan(then, error)?);
            }
        }
    }
    let then = plan.installations.iter().map(|then| &then.installation);
    let is_ordered = then.eq(prepared.iter().map(|now| &now.plan.installation));
    if differences.is_empty() && !is_ordered {
        differences.push(Difference::new("the add-ons", "their order changed"));
    }
    if differences.is_empty() {
        Ok(prepared)
    } else {
        Err(refusal(plan, differences))
    }
}

fn moved_record(pipeline: &Pipeline<'_>, then: &PlannedInstallation) -> Vec<Difference> {
    let record = pipeline.known.get(&then.installation);
    file::moved_record(then, record.map(RecordFacts::of).as_ref())
}

/// What cannot be planned any more is a difference as well; what the server says to us is an error of its own.
fn no_plan(then: &PlannedInstallation, error: anyhow::Error) -> Result<Difference> {
    let is_own = |cause: &(dyn std::error::Error + 'static)| {
        cause.is::<EngineError>() || cause.is::<Refused>() || cause.is::<NotServed>()
    };
    if error.chain().any(is_own) {
        return Err(error);
    }
    let subject = format!("installation {}", then.installation);
    let what = format!("there is no such plan any more: {error:#}");
    Ok(Difference::new(subject, what))
}

fn refusal(plan: &PlanFile, differences: Vec<Difference>) -> anyhow::Error {
    let addons = plan.installations.iter().map(|planned| {
        let name = &planned.installation.name;
        match planned.to.version.as_str() {
            "" => name.clone(),
            version => format!("{name}@{version}"),
        }
    });
    let addons = addons.collect();
    Moved {
        differences,
        addons,
    }
    .into()
}

/// Every flag by name: a new one does not compile until it is read.
fn flags(recorded: &file::Flags) -> Flags {
    let file::Flags {
        repair,
        allow_downgrade,
        allow_prune,
        delete,
        allow_crd_breakage: _,
        recreate: _,
    } = recorded;
    Flags {
        repair: *repair,
        allow_downgrade: *allow_downgrade,
        allow_prune: *allow_prune,
        delete: delete.into(),
        wait_for_types: None,
    }
}
